#ifndef COACCEL_DEVICE_GROWING_POOL_HPP
#define COACCEL_DEVICE_GROWING_POOL_HPP

#include <coaccel/core/config.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coaccel::detail {

/// Threads that are added while all there are have something to do, up to a limit, and stay.
class COACCEL_DECL growing_pool {
public:
    explicit growing_pool(std::size_t limit) noexcept : limit_(limit) {}
    growing_pool(const growing_pool&) = delete;
    growing_pool& operator=(const growing_pool&) = delete;
    ~growing_pool() { join(); }

    /// Runs the job on one of the threads. Jobs must not throw. std::system_error when there is no thread to be had at
    /// all, and std::bad_alloc; the job is not run then.
    void run(std::function<void()> job);

    /// Waits until every job has ended.
    void join() noexcept;

private:
    void work() noexcept;

    const std::size_t limit_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool ending_ = false;
};

} // namespace coaccel::detail

#endif
