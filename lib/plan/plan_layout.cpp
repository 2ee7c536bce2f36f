#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/shape.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace coaccel::detail {
namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) noexcept
{
    return (bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
}

/// The ops between which a slot is used. Without a use the first is after the last.
struct lifetime {
    std::size_t first = std::numeric_limits<std::size_t>::max();
    std::size_t last = 0;

    bool meets(const lifetime& other) const noexcept { return first <= other.last && other.first <= last; }
};

std::vector<lifetime> lifetimes(const plan_data& plan)
{
    std::vector<lifetime> made(plan.slots.size());
    for (std::size_t i = 0; i < plan.ops.size(); ++i)
        for (const op_field& f : plan.ops[i].info->operands) {
            const any_ref r = ref_of(plan.ops[i], f);
            if (has_none(f, r))
                continue;
            lifetime& l = made[r.slot];
            l.first = std::min(l.first, i);
            l.last = i;
        }
    return made;
}

/// A scratch slot that has its place.
struct placed {
    std::uint64_t begin;
    std::uint64_t end;
    lifetime used;
};

/// The beginning of the smallest gap for `bytes` between slots that are used at the same time.
std::uint64_t best_fit(const std::vector<placed>& by_begin, std::uint64_t bytes, const lifetime& used) noexcept
{
    std::uint64_t end = 0;
    std::uint64_t found = 0;
    std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
    for (const placed& p : by_begin) {
        if (!p.used.meets(used))
            continue;
        if (p.begin > end && p.begin - end >= bytes && p.begin - end < smallest) {
            found = end;
            smallest = p.begin - end;
        }
        end = std::max(end, p.end);
    }
    return smallest == std::numeric_limits<std::uint64_t>::max() ? end : found;
}

/// Places the scratch slots from `begin` on, the largest first. Returns where they end.
std::uint64_t place_scratch(plan_data& plan, std::uint64_t begin)
{
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < plan.slots.size(); ++i)
        if (plan.slots[i].kind == slot_kind::scratch)
            order.push_back(i);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](std::uint32_t i) { return padded(plan.slots[i].bytes()); });
    const auto used = lifetimes(plan);
    std::vector<placed> by_begin;
    by_begin.reserve(order.size());
    std::uint64_t end = 0;
    for (const std::uint32_t i : order) {
        const std::uint64_t bytes = padded(plan.slots[i].bytes());
        const std::uint64_t at = best_fit(by_begin, bytes, used[i]);
        plan.slots[i].offset = begin + at;
        plan.unshared_scratch_bytes += bytes;
        end = std::max(end, at + bytes);
        by_begin.insert(std::ranges::upper_bound(by_begin, at, {}, &placed::begin), {at, at + bytes, used[i]});
    }
    return begin + end;
}

/// For each of these slots, whether the run copies it: all parameters, and the smallest arguments that fit into
/// most_staged_bytes.
std::vector<bool> choose_staged(const plan_data& plan, const std::vector<std::uint32_t>& slots)
{
    const auto slot = [&](std::size_t i) -> const plan_slot& { return plan.slots[slots[i]]; };
    std::vector<bool> chosen(slots.size());
    std::vector<std::size_t> order;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (slot(i).kind == slot_kind::parameter) {
            chosen[i] = true;
            bytes += padded(slot(i).bytes());
        } else if (slot(i).bytes() <= largest_staged_argument) {
            order.push_back(i);
        }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return slot(i).bytes(); });
    for (const std::size_t i : order) {
        bytes += padded(slot(i).bytes());
        if (bytes > most_staged_bytes)
            break;
        chosen[i] = true;
    }
    return chosen;
}

/// Places arguments from `at` on, those that the run copies first. Returns the range of these.
byte_range place_arguments(plan_data& plan, const std::vector<std::uint32_t>& slots, std::uint64_t& at)
{
    const std::vector<bool> chosen = choose_staged(plan, slots);
    byte_range staged{.offset = at};
    for (const bool wanted : {true, false})
        for (std::size_t i = 0; i < slots.size(); ++i) {
            plan_slot& s = plan.slots[slots[i]];
            if (chosen[i] != wanted)
                continue;
            s.offset = at;
            if (wanted)
                staged.bytes = at + s.bytes() - staged.offset;
            at += padded(s.bytes());
        }
    return staged;
}

/// Whether the sum of all slots is so small that no sum of some of them overflows.
bool fits(const plan_data& plan) noexcept
{
    extent sum = 0;
    for (const plan_slot& s : plan.slots)
        sum = plus(sum, padded(s.bytes()));
    return sum && *sum >> 63 == 0;
}

} // namespace

error_code lay_out(plan_data& plan)
{
    if (!fits(plan))
        return op_error(errc::size_overflow, plan_label(plan.name), {"its slots need 2^63 bytes or more"});
    std::uint64_t at = 0;
    std::vector<std::uint32_t> brought = plan.inputs;
    brought.insert(brought.end(), plan.parameters.begin(), plan.parameters.end());
    plan.staged_inputs = place_arguments(plan, brought, at);
    plan.staged_outputs = place_arguments(plan, plan.outputs, at);
    plan.instance_bytes = place_scratch(plan, at);
    return {};
}

} // namespace coaccel::detail
