#include <coaccel/host/host_options.hpp>

namespace coaccel {

error_code host_options::check() const noexcept
{
    constexpr int most_threads = 1024;
    if (mode > host_mode::in_turn || threads < 0 || threads > most_threads ||
        faults.delay < std::chrono::nanoseconds(0))
        return errc::invalid_option;
    // An op that waits in the device's turn would hold up the caller's executor.
    const bool waits =
        faults.hang_at != 0 || faults.delay > std::chrono::nanoseconds(0) || (injector && injector->blocks());
    return mode == host_mode::in_turn && waits ? make_error_code(errc::invalid_option) : error_code{};
}

} // namespace coaccel
