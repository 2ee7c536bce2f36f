#include "context/completion/duration_estimator.hpp"

#include "context/buffers/operands.hpp"

#include <algorithm>

namespace coaccel::detail {
namespace {

constexpr int enough_hits = 4;

constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) noexcept
{
    seed = (seed ^ value) * 0x9e3779b97f4a7c15ull;
    return seed ^ seed >> 29;
}

} // namespace

duration_estimator::kind duration_estimator::kind_of(const request& r) noexcept
{
    kind k = mix(r.bytes, r.ops.size());
    const bound_op& first = r.ops.front();
    k = mix(k, first.info->id);
    if (first.info->work)
        k = mix(k, first.info->work(first.op));
    for (std::size_t i = 0; i < first.info->operands.size(); ++i)
        k = mix(k, operand_of(first, i).size);
    return k;
}

duration_estimator::estimate duration_estimator::of(kind k) const noexcept
{
    const entry& e = entries_[k % entries_.size()];
    return e.what == k ? estimate{e.expected, e.hits >= enough_hits} : estimate{};
}

void duration_estimator::learn(kind k, duration taken, bool polling, bool overdue) noexcept
{
    if (polling)
        saw(k, taken);
    else if (overdue)
        ended_after(k, taken);
    else
        ended_before(k, taken);
}

void duration_estimator::saw(kind k, duration taken) noexcept
{
    entry& e = entry_of(k);
    if (e.what != k)
        e = {k, taken, 0};
    e.expected = (3 * e.expected + taken) / 4;
    e.hits = std::min(e.hits + 1, enough_hits);
}

void duration_estimator::ended_before(kind k, duration at_most) noexcept
{
    entry& e = entry_of(k);
    const duration known = e.what == k ? std::min(e.expected, at_most) : at_most;
    e = {k, known - known / 8, 0};
}

void duration_estimator::ended_after(kind k, duration at_most) noexcept
{
    entry& e = entry_of(k);
    const duration known = e.what == k ? e.expected : at_most;
    e = {k, known + (at_most - known) / 2, 0};
}

} // namespace coaccel::detail
