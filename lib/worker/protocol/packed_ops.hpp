#ifndef COACCEL_WORKER_PROTOCOL_PACKED_OPS_HPP
#define COACCEL_WORKER_PROTOCOL_PACKED_OPS_HPP

#include "worker/protocol/codec.hpp"

#include <coaccel/core/op.hpp>

#include <memory>
#include <span>
#include <vector>

namespace coaccel::jit {
struct image;
}

// Launches and calls of plug-ins have no fixed description: each brings the positions of its refs along.
namespace coaccel::worker {

/// Size limit of an op; launches are the largest.
inline constexpr std::size_t largest_op = 8192;

constexpr bool is_dtype(dtype t) noexcept
{
    return t >= dtype::f16 && t <= dtype::c128;
}

bool is_packed_id(std::uint64_t op_id) noexcept;

/// The compiled kernels of another process, by its ids.
class kernel_source {
public:
    /// Null for a kernel that is unknown or not complete.
    virtual std::shared_ptr<const jit::image> find(std::uint64_t id) const noexcept = 0;

protected:
    ~kernel_source() = default;
};

void put_operands(encoder& out, std::span<const op_field> operands);
/// Replaces `operands`. Returns false if they are invalid or outside an op of this size.
[[nodiscard]] bool get_operands(decoder& in, std::vector<op_field>& operands, std::size_t op_size);

/// The received parts of a packed op.
struct packed_op_frame {
    std::uint64_t id = 0;
    /// Aligned like every op. The ids of kernels are replaced by those of this process.
    std::span<std::byte> op;
    std::span<const op_field> operands;
};

/// Checks a packed op, and completes its description. `kept` gets its kernel, if it has one.
///
/// Errors: errc::worker_corrupted for an invalid op, errc::invalid_argument for a missing kernel.
error_code describe_packed(const packed_op_frame& frame, const kernel_source& kernels, op_info& own,
                           std::shared_ptr<const void>& kept);

} // namespace coaccel::worker

#endif
