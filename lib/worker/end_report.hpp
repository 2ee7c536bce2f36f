#ifndef COACCEL_WORKER_END_REPORT_HPP
#define COACCEL_WORKER_END_REPORT_HPP

#include "worker/child_process.hpp"

#include <coaccel/core/error.hpp>

#include <optional>
#include <string>

namespace coaccel::worker {

/// How a worker that nobody ended has ended: errc::worker_exited, worker_killed or worker_mismatch.
struct end_report {
    errc what{};
    /// Behind the name of the worker.
    std::string text;
};

/// `last_word` is the exit status that the worker itself has sent, if it has. It counts when the system does not tell
/// one; a worker that has not even sent that was ended by a signal.
COACCEL_DECL end_report report_end(child_process::end how, std::optional<int> last_word);

} // namespace coaccel::worker

#endif
