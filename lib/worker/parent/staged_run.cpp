#include "worker/parent/staged_run.hpp"

#include <cstring>

namespace coaccel::worker {
namespace {

using detail::run_argument;

// A cache line, so that copies of neighbouring arguments do not share one.
constexpr std::uint64_t alignment = 64;

constexpr std::uint64_t aligned(std::uint64_t n) noexcept
{
    return (n + alignment - 1) / alignment * alignment;
}

/// Calls `f` with each argument, and with its place in the block or, for pinned memory, in the staging area.
template <class F>
void for_each(const detail::plan_run_op& op, const staging& memory, F f)
{
    std::uint64_t at = 0;
    const auto visit = [&](const run_argument& a, bool output) {
        if (const auto pinned = memory.offset_of(a.host, a.where.bytes)) {
            f(a, output, true, *pinned);
        } else {
            f(a, output, false, at);
            at += aligned(a.where.bytes);
        }
    };
    for (const run_argument& a : op.staged_inputs())
        visit(a, false);
    for (const run_argument& a : op.staged_outputs())
        visit(a, true);
}

} // namespace

staged_run::staged_run(const detail::plan_run_op& op, const staging& memory) noexcept : op_(op), memory_(memory)
{
    for_each(op, memory, [this](const run_argument& a, bool output, bool pinned, std::uint64_t) {
        into_pinned_ |= pinned && output;
        bytes_ += pinned ? 0 : aligned(a.where.bytes);
    });
}

void staged_run::fill(std::uint64_t block, run_frame& frame) const
{
    frame.inputs.clear();
    frame.outputs.clear();
    for_each(op_, memory_, [&](const run_argument& a, bool output, bool pinned, std::uint64_t at) {
        const std::uint64_t offset = pinned ? at : block + at;
        (output ? frame.outputs : frame.inputs).push_back({a.where, offset});
        if (!pinned && !output)
            std::memcpy(memory_.at(offset), a.host, a.where.bytes);
    });
}

void staged_run::deliver(std::uint64_t block) const noexcept
{
    for_each(op_, memory_, [&](const run_argument& a, bool output, bool pinned, std::uint64_t at) {
        if (!pinned && output)
            std::memcpy(a.host, memory_.at(block + at), a.where.bytes);
    });
}

} // namespace coaccel::worker
