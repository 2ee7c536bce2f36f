#include "worker/process/end_report.hpp"

#include "worker/protocol/wire.hpp"

#include <csignal>
#include <cstring>

namespace coaccel::worker {
namespace {

/// Whether a process gets this signal for what it does itself.
bool is_own_error(int signal) noexcept
{
    switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGABRT:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGSYS: return true;
    default: return false;
    }
}

} // namespace

end_report report_end(detail::child_process::end how, std::optional<int> last_word)
{
    const bool unknown = !how.by_signal && how.value < 0;
    if (unknown && !last_word)
        return {errc::worker_killed, detail::loss_cause::outside,
                "was ended by a signal; which one is unknown, because SIGCHLD is ignored or another part of the "
                "program has waited for the process"};
    const int status = unknown ? *last_word : how.value;
    if (how.by_signal)
        return {errc::worker_killed, is_own_error(status) ? detail::loss_cause::fault : detail::loss_cause::outside,
                "was ended by signal " + std::to_string(status) + " (" + ::strsignal(status) + ")"};
    return {status == exit_mismatch ? errc::worker_mismatch : errc::worker_exited, detail::loss_cause::fault,
            "ended with status " + std::to_string(status)};
}

} // namespace coaccel::worker
