#ifndef COACCEL_WORKER_OVERSEER_HPP
#define COACCEL_WORKER_OVERSEER_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

namespace coaccel::worker {

/// What the overseer tells about a process, and asks; all of it on the overseer's thread.
class COACCEL_DECL ward {
public:
    using clock = std::chrono::steady_clock;

    /// The process has ended. Told once, and the last there is.
    virtual void ended() noexcept = 0;

    /// The process cannot be watched any longer, because the program has closed descriptors that are not its own, as
    /// closefrom() does. The last there is, in the place of ended().
    virtual void unwatched() noexcept = 0;

    /// A line of its standard error, of at most 1024 bytes before it was made printable; a longer one comes in parts.
    virtual void said(std::string_view line) noexcept = 0;

    /// False: the process gave no sign of life, and has been killed. It is not asked about again.
    virtual bool alive(clock::time_point now) noexcept = 0;

protected:
    ~ward() = default;
};

/// One thread that watches all worker processes; ends with its last user.
///
/// Thread safety: any thread, and from within the calls of a ward. Does nothing in a forked child.
class COACCEL_DECL overseer {
public:
    /// Null when there can be no thread. Another one when the descriptors of the last have been closed.
    static std::shared_ptr<overseer> shared();

    overseer(const overseer&) = delete;
    overseer& operator=(const overseer&) = delete;
    ~overseer();

    /// Both descriptors stay the caller's and stay open until remove(). Reads of `errors` may not block; -1: none.
    /// Calls alive() every `look_every`, unless that is zero.
    error_code add(ward& who, int pidfd, int errors, std::chrono::nanoseconds look_every);

    /// After it returns the ward is not called. Waits for a call that is under way, unless made from within it: hold no
    /// lock that the ward takes.
    void remove(ward& who) noexcept;

private:
    struct charge;
    class state;

    explicit overseer(std::shared_ptr<state> s);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

} // namespace coaccel::worker

#endif
