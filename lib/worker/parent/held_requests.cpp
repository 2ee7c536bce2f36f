#include "worker/parent/held_requests.hpp"

#include "context/buffers/operands.hpp"
#include "context/lanes/op_states.hpp"

#include <algorithm>

namespace coaccel::worker {

using detail::request;

namespace {

/// Calls the predicate with the slot of each operand in memory of the device, until it returns true.
template <class Predicate>
bool any_slot(const bound_op& op, std::uint32_t device, Predicate predicate)
{
    for (std::size_t i = 0; i < op.info->operands.size(); ++i) {
        const any_ref& ref = detail::operand_of(op, i);
        if (ref.device == device && predicate(ref.slot))
            return true;
    }
    return false;
}

bool uses(const request& r, std::uint32_t slot, std::uint32_t device)
{
    return std::ranges::any_of(r.ops, [&](const bound_op& op) {
        return any_slot(op, device, [slot](std::uint32_t used) { return used == slot; });
    });
}

} // namespace

bool held_requests::must_wait(const request& r, std::uint32_t device) const
{
    return std::ranges::any_of(r.ops, [&](const bound_op& op) {
        if (any_slot(op, device, [&](std::uint32_t slot) { return blocked(slot, device); }))
            return true;
        const auto state = detail::op_states::id_of(op);
        return state != 0 && has_state(state);
    });
}

bool held_requests::blocked(std::uint32_t slot, std::uint32_t device) const
{
    return unsent_(slot) || std::ranges::any_of(held_, [&](const entry& e) {
               return e.who ? uses(*e.who, slot, device) : e.released.slot == slot;
           });
}

bool held_requests::has_state(std::uint64_t state) const noexcept
{
    const auto has = [state](const bound_op& op) { return detail::op_states::id_of(op) == state; };
    return std::ranges::any_of(held_, [&](const entry& e) { return e.who && std::ranges::any_of(e.who->ops, has); });
}

void held_requests::let_go(std::uint32_t device, const std::function<void(request&)>& start,
                           const std::function<void(const any_ref&)>& release)
{
    std::deque<entry> all;
    all.swap(held_);
    // Each entry may have to wait for the entries before it.
    for (const entry& e : all) {
        if (e.who ? must_wait(*e.who, device) : must_wait(e.released, device))
            held_.push_back(e);
        else if (e.who)
            start(*e.who);
        else
            release(e.released);
    }
}

void held_requests::take_all(const std::function<void(request&)>& function)
{
    for (const entry& e : held_)
        if (e.who)
            function(*e.who);
    held_.clear();
}

} // namespace coaccel::worker
