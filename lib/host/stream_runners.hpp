#ifndef COACCEL_HOST_STREAM_RUNNERS_HPP
#define COACCEL_HOST_STREAM_RUNNERS_HPP

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

/// Threads that run streams, those with the highest priority first.
class stream_runners {
public:
    using run_function = std::function<void(stream_state&)>;

    /// The first action of a thread without work: `look` polls for a short time, `sleep` blocks.
    enum class idle : std::uint8_t { look, sleep };

    stream_runners(int threads, run_function run, idle how = idle::look);
    ~stream_runners() { stop(); }

    /// Runs the stream as soon as a thread is free.
    void schedule(stream_state& s);

    int threads() const noexcept { return static_cast<int>(threads_.size()); }

    /// Discards the scheduled streams and waits for the threads to end.
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
