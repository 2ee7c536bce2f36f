#include "cuda/plan/run_timer.hpp"

#include "cuda/backend.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::cuda {

bool run_timer::record(backend& b, CUevent& e, CUstream s) noexcept
{
    if (b.dead())
        return false;
    if (!e && b.check(b.api().cuEventCreate(&e, CU_EVENT_DEFAULT))) {
        e = nullptr;
        return false;
    }
    return !b.check(b.api().cuEventRecord(e, s));
}

void run_timer::start(backend& b, CUstream s) noexcept
{
    if (active_)
        active_ = record(b, start_, s);
}

void run_timer::stop(backend& b, CUstream s) noexcept
{
    if (active_)
        stopped_ = record(b, stop_, s);
}

std::uint64_t run_timer::end_run(backend& b) noexcept
{
    const bool measured = std::exchange(active_, false) && std::exchange(stopped_, false);
    float milliseconds = 0;
    if (!measured || b.dead() || b.check(b.api().elapsed_time(&milliseconds, start_, stop_)))
        return 0;
    return static_cast<std::uint64_t>(std::max(1.0, 1e6 * static_cast<double>(milliseconds)));
}

void run_timer::destroy(backend& b) noexcept
{
    for (CUevent* e : {&start_, &stop_})
        if (*e)
            (void)b.check(b.api().cuEventDestroy(std::exchange(*e, nullptr)));
}

} // namespace coaccel::cuda
