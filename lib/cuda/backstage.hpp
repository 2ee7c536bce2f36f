#ifndef COACCEL_CUDA_BACKSTAGE_HPP
#define COACCEL_CUDA_BACKSTAGE_HPP

#include "cuda/load/driver_api.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coaccel::cuda {

/// The threads of a context for what may not hold up the executor. Its context is current on them.
class backstage {
public:
    backstage(const driver_api& api, CUcontext context, int max_threads);
    backstage(const backstage&) = delete;
    backstage& operator=(const backstage&) = delete;
    ~backstage() { stop(); }

    /// Runs the job on one of the threads, after those that were there before it; drops it after `stop`. Jobs must not
    /// throw. False: there is no thread to be had at all, and the job was dropped.
    [[nodiscard]] bool run(std::function<void()> job);

    int max_threads() const noexcept { return max_threads_; }

    /// No job is there, and no thread in the driver.
    bool quiet() const noexcept;

    /// Drops what has not begun and waits for what has.
    void stop() noexcept;

    /// From now on jobs make no further calls for the context, which would all be refused.
    void context_died() noexcept { context_dead_.store(true, std::memory_order_release); }
    bool context_dead() const noexcept { return context_dead_.load(std::memory_order_acquire); }

private:
    void work();

    const driver_api& api_;
    CUcontext context_;
    const int max_threads_;
    std::atomic<bool> context_dead_{false};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
    int idle_ = 0;
    bool stopping_ = false;
};

} // namespace coaccel::cuda

#endif
