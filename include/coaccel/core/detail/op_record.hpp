#ifndef COACCEL_CORE_DETAIL_OP_RECORD_HPP
#define COACCEL_CORE_DETAIL_OP_RECORD_HPP

#include <coaccel/core/op.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace coaccel::detail {

/// Aligned for every op and every reply.
struct alignas(16) op_unit {
    std::byte bytes[16];
};

constexpr std::size_t op_units(std::size_t bytes) noexcept
{
    return (bytes + sizeof(op_unit) - 1) / sizeof(op_unit);
}

/// An op whose type is known only at run time, with room for its reply and for the addresses of its operands.
struct op_record {
    std::vector<op_unit> op;
    std::vector<op_unit> reply;
    std::vector<void*> addresses;
    /// An object that must live until the op ends.
    std::shared_ptr<const void> kept;

    /// Copies the op. What the record held before is overwritten.
    void assign(const op_info& info, const void* data)
    {
        op.resize(op_units(info.size));
        if (info.size != 0)
            std::memcpy(op.data(), data, info.size);
        kept.reset();
    }

    /// Uses the op that the record holds.
    bound_op bind(const op_info& info)
    {
        reply.assign(op_units(info.reply_size), {});
        addresses.resize(info.operands.size());
        return {.info = &info, .op = op.data(), .reply = reply.data(), .operands = addresses.data()};
    }
};

} // namespace coaccel::detail

#endif
