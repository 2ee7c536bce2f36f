#ifndef COACCEL_WORKER_PROCESS_END_REPORT_HPP
#define COACCEL_WORKER_PROCESS_END_REPORT_HPP

#include "context/context.hpp"
#include "posix/child_process.hpp"

#include <coaccel/core/error.hpp>

#include <optional>
#include <string>

namespace coaccel::worker {

/// How a worker ended that this process did not end: errc::worker_exited, worker_killed or worker_mismatch.
struct end_report {
    errc what{};
    /// Signals that a process raises by its own error, and its exit, are faults. Which signal it was may be unknown.
    detail::loss_cause cause = detail::loss_cause::outside;
    /// Follows the name of the worker in messages.
    std::string text;
};

/// `last_word` is the exit status that the worker itself sent, if it did. It is used when the system reports no status;
/// a worker that sent none either was ended by a signal.
COACCEL_DECL end_report report_end(detail::child_process::end how, std::optional<int> last_word);

} // namespace coaccel::worker

#endif
