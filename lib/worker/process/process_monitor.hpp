#ifndef COACCEL_WORKER_PROCESS_PROCESS_MONITOR_HPP
#define COACCEL_WORKER_PROCESS_PROCESS_MONITOR_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

namespace coaccel::worker {

/// Receives events of a watched process; all calls are made on the process_monitor's thread.
class COACCEL_DECL process_observer {
public:
    using clock = std::chrono::steady_clock;

    /// The process has ended. Called once, as the last call.
    virtual void ended() noexcept = 0;

    /// The process can no longer be watched, because the program has closed descriptors that it does not own, as
    /// closefrom() does. The last call, instead of ended().
    virtual void unwatched() noexcept = 0;

    /// A line of its standard error, of at most 1024 bytes before escaping; a longer line is passed in parts.
    virtual void said(std::string_view line) noexcept = 0;

    /// Returns false if the process gave no sign of life and was killed; it is not called again then.
    virtual bool alive(clock::time_point now) noexcept = 0;

protected:
    ~process_observer() = default;
};

/// A thread that watches all worker processes; it ends with its last user.
///
/// Thread safety: any thread, including calls from within an observer. Does nothing in a forked child.
class COACCEL_DECL process_monitor {
public:
    /// Null if no thread can be started. A new monitor if the descriptors of the last one have been closed.
    static std::shared_ptr<process_monitor> shared();

    process_monitor(const process_monitor&) = delete;
    process_monitor& operator=(const process_monitor&) = delete;
    ~process_monitor();

    /// The caller keeps ownership of both descriptors and keeps them open until remove(). Reads of `errors` must not
    /// block; -1: none. Calls alive() every `look_every`, unless that is zero.
    error_code add(process_observer& who, int pidfd, int errors, std::chrono::nanoseconds look_every);

    /// After it returns the observer is not called. Waits for a running call, unless called from within it: the caller
    /// must hold no lock that the observer takes.
    void remove(process_observer& who) noexcept;

private:
    struct watched_process;
    class state;

    explicit process_monitor(std::shared_ptr<state> s);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

} // namespace coaccel::worker

#endif
