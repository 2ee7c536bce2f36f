#ifndef COACCEL_DEVICE_LOAD_PART_HPP
#define COACCEL_DEVICE_LOAD_PART_HPP

#include "context/exported_memory.hpp"

#include <coaccel/core/detail/op_record.hpp>
#include <coaccel/core/detail/request.hpp>

#include <memory>

namespace coaccel::detail {

/// Whether a request has ended with its context, and so says nothing about what the context can do.
inline bool is_end_of_context(const error_code& ec) noexcept
{
    const auto e = errc_of(ec);
    return is_context_lost(ec) || is_device_lost(ec) || e == errc::device_stopped || e == errc::device_failed;
}

/// Whether memory that could not be imported because of this error is useless. Otherwise the context lacks something
/// that it, or the next one, may have later.
inline bool is_useless(const error_code& refusal) noexcept
{
    const errc e = errc_of(refusal);
    return e != errc::out_of_memory && e != errc::unsupported_op;
}

/// The most bytes that one request uploads: long enough that the pause between two requests does not matter, short
/// enough that other requests start soon, and that a load can end.
inline constexpr std::uint64_t most_bytes_at_once = std::uint64_t(32) << 20;

class loaded_plan;

/// A request of one op that a device makes itself, for a plan or a durable buffer. It belongs to the context from its
/// submission until the context has finished it.
class load_part final : public request {
public:
    load_part() noexcept : request(request_kind::part) { uses_callers_memory = false; }

    template <op Op>
    void set(const Op& o)
    {
        set(info_of<Op>(), &o);
    }

    void set(const op_info& info, const void* data)
    {
        record_.assign(info, data);
        bound_ = record_.bind(info);
        ops = {&bound_, 1};
    }

    template <class Reply>
    const Reply& reply() const noexcept
    {
        return *static_cast<const Reply*>(bound_.reply);
    }

    /// It is for a durable buffer.
    bool durable = false;
    /// Why it cannot be submitted; the device ends it with this error.
    error_code refusal{};
    /// It belongs to the standby of the device.
    bool standby = false;
    /// The memory that the op imports, or has exported.
    std::shared_ptr<const exported_memory> memory;
    /// The plan, whose data the context may still use after the plan has left the device.
    std::shared_ptr<const loaded_plan> plan;

    void post() override {}
    void destroy() noexcept override { delete this; }

private:
    op_record record_;
    bound_op bound_;
};

} // namespace coaccel::detail

#endif
