#ifndef COACCEL_WORKER_PARENT_HEARTBEAT_MONITOR_HPP
#define COACCEL_WORKER_PARENT_HEARTBEAT_MONITOR_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel::worker {

/// Decides from its heartbeats whether a worker is alive.
class COACCEL_DECL heartbeat_monitor {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// The interval at which a worker beats and at which the parent checks it.
    static std::chrono::nanoseconds beat_of(std::chrono::nanoseconds heartbeat) noexcept;

    heartbeat_monitor(std::chrono::nanoseconds start_timeout, std::chrono::nanoseconds heartbeat,
                      time_point now) noexcept
        : start_timeout_(start_timeout), heartbeat_(heartbeat), look_every_(beat_of(heartbeat)), last_look_(now)
    {}

    std::chrono::nanoseconds look_every() const noexcept { return look_every_; }

    /// Returns no error if the worker is alive, otherwise errc::worker_late or errc::worker_hung.
    errc look(std::uint64_t beats, time_point now) noexcept;

private:
    std::chrono::nanoseconds start_timeout_;
    std::chrono::nanoseconds heartbeat_;
    std::chrono::nanoseconds look_every_;
    std::uint64_t beats_ = 0;
    time_point last_look_;
    std::chrono::nanoseconds silence_{};
};

} // namespace coaccel::worker

#endif
