#ifndef COACCEL_WORKER_PROTOCOL_PLAN_FRAMES_HPP
#define COACCEL_WORKER_PROTOCOL_PLAN_FRAMES_HPP

#include "worker/protocol/wire.hpp"

#include <coaccel/plan/detail/plan_data.hpp>

// The records by which a worker loads and runs plans. An instance is unloaded by an ordinary submission.
namespace coaccel::worker {

/// Limits on the plans that a worker holds, far above the needs of programs. The parent enforces them, so a record
/// beyond them is a protocol error.
struct plan_limits {
    std::size_t plans = std::size_t(1) << 16;
    /// One encoded plan, and all of them together.
    std::uint64_t bytes_each = std::uint64_t(256) << 20;
    std::uint64_t bytes = std::uint64_t(1) << 30;
};

/// A part of an encoded plan.
struct plan_frame {
    /// Chosen by the parent.
    std::uint64_t number = 0;
    std::uint64_t total = 0;
    std::uint64_t offset = 0;
    std::span<const std::byte> part;
};

void put_plan(encoder& out, const plan_frame& frame);
/// Precondition for this and the functions below: the message type has been read.
[[nodiscard]] bool get_plan(decoder& in, plan_frame& frame);

/// Loads an instance. Its refs are sent in a short form, so that a record has room for many constants: their element
/// types follow from the plan, and all belong to one context.
struct load_frame {
    request_head head;
    std::uint64_t plan = 0;
    std::uint64_t instance = 0;
    std::uint64_t chain = 0;
    /// In the order of plan_load_operands.
    std::vector<any_ref> refs;
};

void put_load(encoder& out, const load_frame& frame);
[[nodiscard]] bool get_load(decoder& in, load_frame& frame);

/// An argument that passes through the staging area.
struct staged_argument {
    /// In the memory of the instance.
    detail::byte_range where;
    /// In the staging area.
    std::uint64_t offset = 0;
};

struct run_frame {
    request_head head;
    any_ref memory;
    std::uint64_t instance = 0;
    std::uint64_t chain = 0;
    std::vector<staged_argument> inputs;
    std::vector<staged_argument> outputs;
};

void put_run(encoder& out, const run_frame& frame);
[[nodiscard]] bool get_run(decoder& in, run_frame& frame);

} // namespace coaccel::worker

#endif
