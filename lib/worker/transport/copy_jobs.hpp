#ifndef COACCEL_WORKER_TRANSPORT_COPY_JOBS_HPP
#define COACCEL_WORKER_TRANSPORT_COPY_JOBS_HPP

#include "posix/thread_pool.hpp"

#include <coaccel/core/backend.hpp>

#include <functional>
#include <mutex>
#include <vector>

namespace coaccel::worker {

/// Copies on other threads than the executor's, and the list of those that have ended.
class COACCEL_DECL copy_jobs {
public:
    /// Names a job in the list of ended ones.
    using token = void*;

    explicit copy_jobs(int threads) : threads_(static_cast<std::size_t>(threads)) {}

    /// Runs the job, adds the token to the list and then notifies. Without a thread it runs on the calling one. Jobs
    /// must not throw.
    void run(std::function<void()> job, token t, notification done);

    /// Replaces `out` with the tokens of the jobs that have ended.
    void take_done(std::vector<token>& out);

    /// Waits for the jobs that are running; the queued ones are not run.
    void stop() noexcept { threads_.stop(); }

private:
    std::mutex mutex_;
    std::vector<token> done_;
    // Last: its threads use the other members.
    detail::thread_pool threads_;
};

} // namespace coaccel::worker

#endif
