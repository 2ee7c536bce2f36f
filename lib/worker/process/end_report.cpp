#include "worker/process/end_report.hpp"

#include "worker/protocol/wire.hpp"

#include <cstring>

namespace coaccel::worker {

end_report report_end(detail::child_process::end how, std::optional<int> last_word)
{
    const bool unknown = !how.by_signal && how.value < 0;
    if (unknown && !last_word)
        return {errc::worker_killed, "was ended by a signal; which one is unknown, because SIGCHLD is ignored or "
                                     "another part of the program has "
                                     "waited for the process"};
    const int status = unknown ? *last_word : how.value;
    if (how.by_signal)
        return {errc::worker_killed,
                "was ended by signal " + std::to_string(status) + " (" + ::strsignal(status) + ")"};
    return {status == exit_mismatch ? errc::worker_mismatch : errc::worker_exited,
            "ended with status " + std::to_string(status)};
}

} // namespace coaccel::worker
