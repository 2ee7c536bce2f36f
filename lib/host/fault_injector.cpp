#include <coaccel/host/fault_injector.hpp>

namespace coaccel {

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
