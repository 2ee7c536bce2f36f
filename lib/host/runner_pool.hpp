#ifndef COACCEL_HOST_RUNNER_POOL_HPP
#define COACCEL_HOST_RUNNER_POOL_HPP

#include "host/stream.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coaccel::host {

/// Threads that run streams, the urgent ones first.
class runner_pool {
public:
    using run_function = std::function<void(stream_state&)>;

    /// What a thread without work does at first.
    enum class idle : std::uint8_t { look, sleep };

    runner_pool(int threads, run_function run, idle how = idle::look);
    ~runner_pool() { stop(); }

    /// Gives the stream a runner as soon as a thread is free.
    void schedule(stream_state& s);

    int threads() const noexcept { return static_cast<int>(threads_.size()); }

    /// Forgets what is scheduled and waits for the threads to end.
    void stop() noexcept;

private:
    void loop();
    stream_state* take() noexcept;
    bool linger() const noexcept;

    run_function run_;
    const idle idle_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::array<std::vector<stream_state*>, priority_count> ready_;
    std::atomic<std::size_t> ready_count_{0};
    std::size_t sleeping_ = 0;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

} // namespace coaccel::host

#endif
