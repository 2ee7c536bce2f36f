#ifndef COACCEL_WORKER_REPLY_WATCH_HPP
#define COACCEL_WORKER_REPLY_WATCH_HPP

#include <coaccel/core/config.hpp>

#include <chrono>

namespace coaccel::worker {

/// Judges from its replies whether a worker makes progress. A worker finds an op that hangs by itself; this is for the
/// worker that does not, though it gives signs of life.
class COACCEL_DECL reply_watch {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// So long may it be without a reply while something is in flight. Zero: for ever.
    explicit reply_watch(std::chrono::nanoseconds limit) noexcept;

    /// How long there may be no reply: an op that the worker takes for hung after `hang_timeout`, and the preparations
    /// that do not count as its time, such as loading a kernel, for which there is as much time as for a start.
    static std::chrono::nanoseconds limit_for(std::chrono::nanoseconds hang_timeout,
                                              std::chrono::nanoseconds start_timeout) noexcept;

    /// `waiting`: something is in flight. `answered`: something came since the last look. True: it took too long.
    bool look(bool waiting, bool answered, time_point now) noexcept;

    /// When to look again, at the latest.
    time_point next_look() const noexcept;

    std::chrono::nanoseconds limit() const noexcept { return limit_; }

private:
    std::chrono::nanoseconds limit_;
    std::chrono::nanoseconds look_every_;
    std::chrono::nanoseconds silence_{};
    time_point last_look_{};
    bool waiting_ = false;
};

} // namespace coaccel::worker

#endif
