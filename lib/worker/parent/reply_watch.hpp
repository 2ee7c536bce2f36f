#ifndef COACCEL_WORKER_PARENT_REPLY_WATCH_HPP
#define COACCEL_WORKER_PARENT_REPLY_WATCH_HPP

#include <coaccel/core/config.hpp>

#include <chrono>

namespace coaccel::worker {

/// Decides from its replies whether a worker makes progress. A worker detects hung ops itself; this class detects a
/// worker that does not, although its heartbeat continues.
class COACCEL_DECL reply_watch {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// The maximum time without a reply while requests are in flight. Zero: unlimited.
    explicit reply_watch(std::chrono::nanoseconds limit) noexcept;

    /// The maximum time without a reply: `hang_timeout`, after which the worker treats an op as hung, plus the
    /// preparations that do not count towards it, such as loading a kernel, which may take as long as a start.
    static std::chrono::nanoseconds limit_for(std::chrono::nanoseconds hang_timeout,
                                              std::chrono::nanoseconds start_timeout) noexcept;

    /// `waiting`: requests are in flight. `answered`: replies arrived since the last check. Returns true if the limit
    /// is exceeded.
    bool look(bool waiting, bool answered, time_point now) noexcept;

    /// When to check again, at the latest.
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
