#ifndef COACCEL_POSIX_THREAD_POOL_HPP
#define COACCEL_POSIX_THREAD_POOL_HPP

#include <coaccel/core/config.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coaccel::detail {

/// Threads for jobs that may block. A thread is started when a job arrives and all others are busy, up to a limit.
class COACCEL_DECL thread_pool {
public:
    /// `on_start` is called first on each thread.
    explicit thread_pool(std::size_t limit, std::function<void()> on_start = {});
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    ~thread_pool() { stop(); }

    /// Queues a job. Jobs must not throw. False: no thread could be started at all, memory is short, or the pool was
    /// stopped; the job is not run.
    [[nodiscard]] bool run(std::function<void()> job);

    std::size_t limit() const noexcept { return limit_; }

    /// No job is queued or running.
    bool idle() const noexcept;

    /// Runs every queued job and joins the threads.
    void finish() noexcept { end(queued::run); }

    /// Drops the queued jobs, waits for those that are running and joins the threads.
    void stop() noexcept { end(queued::drop); }

private:
    enum class queued : bool { run, drop };

    void end(queued jobs) noexcept;
    void work() noexcept;

    const std::size_t limit_;
    const std::function<void()> on_start_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
    std::size_t waiting_ = 0;
    bool ending_ = false;
};

} // namespace coaccel::detail

#endif
