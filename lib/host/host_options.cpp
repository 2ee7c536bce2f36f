#include "core/option_check.hpp"

#include <coaccel/host/host_options.hpp>

namespace coaccel {

error_code host_options::check() const noexcept
{
    constexpr int most_threads = 1024;
    using std::chrono::nanoseconds;
    const bool waits = faults.hang_at != 0 || faults.delay > nanoseconds(0) || (injector && injector->blocks());
    const auto ec = detail::check_options({
        {mode <= host_mode::inline_, "host.mode", mode, detail::an_enumerator},
        {threads >= 0 && threads <= most_threads, "host.threads", threads, "it must be from 0 to 1024"},
        {timed_runs >= 0, "host.timed_runs", timed_runs, detail::not_negative},
        {faults.delay >= nanoseconds(0), "host.faults.delay", faults.delay, detail::not_negative},
    });
    // In inline mode, an op that waits would block the caller's executor.
    if (!ec && mode == host_mode::inline_ && waits)
        return detail::option_error("host.faults may not make ops wait with host_mode::inline_");
    return ec;
}

} // namespace coaccel
