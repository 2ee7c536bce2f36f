#ifndef COACCEL_WORKER_PULSE_HPP
#define COACCEL_WORKER_PULSE_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel::worker {

/// Judges from its beats whether a worker lives.
class COACCEL_DECL pulse {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// How often a worker has to beat, and is looked at.
    static std::chrono::nanoseconds beat_of(std::chrono::nanoseconds heartbeat) noexcept;

    pulse(std::chrono::nanoseconds start_timeout, std::chrono::nanoseconds heartbeat, time_point now) noexcept
        : start_timeout_(start_timeout), heartbeat_(heartbeat), look_every_(beat_of(heartbeat)), last_look_(now)
    {}

    std::chrono::nanoseconds look_every() const noexcept { return look_every_; }

    /// No value: it lives. Else errc::worker_late or worker_hung.
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
