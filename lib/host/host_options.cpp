#include "core/option_check.hpp"

#include <coaccel/host/host_options.hpp>

namespace coaccel {

error_code host_options::check() const noexcept
{
    constexpr int most_threads = 1024;
    using std::chrono::nanoseconds;
    const bool waits = faults.hang_at != 0 || faults.delay > nanoseconds(0) || (injector && injector->blocks());
    return detail::check_options({
        {mode <= host_mode::in_turn, "host.mode is none of its values"},
        {threads >= 0 && threads <= most_threads, "host.threads is to be from 0 to 1024"},
        {faults.delay >= nanoseconds(0), "host.faults.delay is negative"},
        // An op that waits in the device's turn would hold up the caller's executor.
        {mode != host_mode::in_turn || !waits, "host.faults may not make ops wait with host_mode::in_turn"},
    });
}

} // namespace coaccel
