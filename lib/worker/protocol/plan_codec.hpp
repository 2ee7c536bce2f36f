#ifndef COACCEL_WORKER_PROTOCOL_PLAN_CODEC_HPP
#define COACCEL_WORKER_PROTOCOL_PLAN_CODEC_HPP

#include "worker/protocol/packed_ops.hpp"

#include <coaccel/plan/detail/plan_data.hpp>

#include <functional>
#include <string_view>

// A plan as bytes: its slots, layout and ops, and the sizes and identities of its contents, but not the contents
// themselves.
namespace coaccel::worker {

/// The limits of a plan. The sender enforces them, so bytes beyond them are invalid.
inline constexpr std::size_t most_plan_slots = 0xffff;
inline constexpr std::size_t most_plan_ops = 0xffff;

/// Appends the plan. Preconditions: no op exceeds largest_op.
COACCEL_DECL void encode_plan(encoder& out, const detail::plan_data& p);

/// Why an op cannot be in a plan that another process runs; success if it can. User functions and transfers use memory
/// of their process.
COACCEL_DECL error_code check_plan_op(const op_info& info) noexcept;

/// What a plan refers to in the process that decodes it.
struct plan_environment {
    /// The description of an op by its id; null if the op is unknown.
    std::function<const op_info*(std::uint64_t)> describe;
    const kernel_source& kernels;
    /// Named in messages about unknown ops.
    std::string_view backend;
};

enum class plan_status : std::uint8_t {
    complete,
    /// The bytes are not a plan.
    malformed,
    /// A plan that this process cannot run, for example because its backend does not implement an op.
    refused,
};

struct decoded_plan {
    plan_status status = plan_status::complete;
    /// Set unless complete. The message names the slot or the op.
    error_code why;
    /// Valid if complete. The contents have sizes and identities, but no data. Each op with its own description, such
    /// as a launch, keeps that description alive.
    detail::plan_data plan;
};

COACCEL_DECL decoded_plan decode_plan(std::span<const std::byte> bytes, const plan_environment& here);

} // namespace coaccel::worker

#endif
