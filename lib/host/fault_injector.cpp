#include <coaccel/host/fault_injector.hpp>

#include <functional>

namespace coaccel {
namespace {

std::size_t hash_of(std::string_view plan) noexcept
{
    return plan.empty() ? 0 : std::hash<std::string_view>()(plan) | 1;
}

} // namespace

void fault_injector::poison_loads(std::string_view plan) noexcept
{
    poisoned_plan_.store(hash_of(plan), std::memory_order_relaxed);
}

bool fault_injector::poisons_load(std::string_view plan) const noexcept
{
    const auto hash = hash_of(plan);
    return hash != 0 && hash == poisoned_plan_.load(std::memory_order_relaxed);
}

fault_injector::verdict fault_injector::next_op() noexcept
{
    const auto n = ops_.fetch_add(1, std::memory_order_relaxed) + 1;
    auto asked = [](std::atomic<bool>& flag) {
        return flag.load(std::memory_order_relaxed) && flag.exchange(false, std::memory_order_relaxed);
    };
    auto verdict = verdict::run;
    if (n == plan_.poison_at || (plan_.poison_every != 0 && n % plan_.poison_every == 0) || asked(poison_))
        verdict = verdict::poison;
    else if (n == plan_.hang_at || asked(hang_))
        verdict = verdict::hang;
    if (verdict != verdict::run)
        played_.fetch_add(1, std::memory_order_relaxed);
    return verdict;
}

bool fault_injector::refuses_start() noexcept
{
    auto left = refusals_.load(std::memory_order_relaxed);
    while (left > 0 && !refusals_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left > 0;
}

} // namespace coaccel
