#include "worker/process/line_limit.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::worker {

bool line_limit::take(time_point now) noexcept
{
    const std::chrono::nanoseconds passed =
        std::max(now - std::exchange(last_line_, now), time_point::duration::zero());
    // The inner bound prevents an overflow of the sum after a long silence.
    credit_ = std::min(credit_ + std::min(passed, burst * price), burst * price);
    if (credit_ < price) {
        ++dropped_;
        return false;
    }
    credit_ -= price;
    return true;
}

std::uint64_t line_limit::report(time_point now) noexcept
{
    if (dropped_ == 0 || now - last_report_ < report_interval)
        return 0;
    last_report_ = now;
    return last_report();
}

std::uint64_t line_limit::last_report() noexcept
{
    return std::exchange(dropped_, 0);
}

} // namespace coaccel::worker
