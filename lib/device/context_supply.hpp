#ifndef COACCEL_DEVICE_CONTEXT_SUPPLY_HPP
#define COACCEL_DEVICE_CONTEXT_SUPPLY_HPP

#include "device/backends.hpp"
#include "device/blocking_pool.hpp"
#include "device/device_executor.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace coaccel::detail {

/// Where the contexts of a device come from, and where the calls run that create and end them: these may block, so they
/// run on another thread. In a forked child nothing is ended, because the threads and the workers belong to the parent
/// process.
class COACCEL_DECL context_supply {
public:
    /// `found`: the source, or why the device cannot be used.
    context_supply(const device_executor& ex, result<context_source> found);

    const error_code& unusable() const noexcept { return unusable_; }
    /// Whether calls that create, end or compile something run on another thread.
    bool blocks() const noexcept { return source_.blocks; }
    /// Whether each context has its own process.
    bool isolated() const noexcept { return source_.isolated; }
    /// Whether a context can be made before the current one is lost.
    bool makes_standbys() const noexcept { return source_.make_standby != nullptr; }
    /// Makes such a context. Called by a job of `run_creation`.
    const context_factory& standby_factory() const noexcept { return source_.make_standby; }
    /// Whether another context is ready or will be soon.
    bool has_standby() const { return source_.has_standby && source_.has_standby(); }

    /// Whether this is a forked child, in which the threads and the workers belong to the parent process.
    bool orphaned() const noexcept;
    /// Returns true in the first call.
    [[nodiscard]] bool notice_orphan() noexcept { return !std::exchange(noticed_, true); }

    /// Runs a job. Errors: errc::start_failed if no thread can be started, errc::out_of_memory. The job is then
    /// destroyed without having run.
    [[nodiscard]] error_code run(blocking_pool::kind what, std::function<void()> job);
    /// The same for a job that calls `make`.
    [[nodiscard]] error_code run_creation(std::function<void()> job);
    /// Runs a job that stops something. It runs on the executor only if no thread can be started, because it must not
    /// be skipped.
    void run_end(std::function<void()> job);

    /// Creates a context. Called by a job of `run_creation`.
    result<std::unique_ptr<context>> make(context_identity identity, context_events& events,
                                          const context_options& options) const
    {
        return source_.make(identity, events, options);
    }
    /// The context that is being created is no longer needed.
    void give_up() const
    {
        if (source_.give_up)
            source_.give_up();
    }
    /// Releases the standbys; a context can still be created later.
    void release_standbys()
    {
        if (source_.rest)
            run_end(source_.rest);
    }

    /// The factory, which must be destroyed off the executor: that may stop standby resources, such as workers. No
    /// context can be created afterwards.
    [[nodiscard]] context_factory take_factory() noexcept
    {
        source_.make_standby = nullptr;
        return std::exchange(source_.make, nullptr);
    }
    /// Destroys the factory off the executor, unless it is gone.
    void drop_factory();
    /// Everything that is left, to be destroyed by the caller; nothing in a forked child.
    [[nodiscard]] context_source take_all();

private:
    error_code run(blocking_pool::kind what, std::function<void()> job, std::function<void()> hurry);

    const device_executor& executor_;
    /// The fork count at construction, which identifies the process.
    const std::uint32_t forks_;
    error_code unusable_;
    context_source source_;
    /// The device has noticed that it runs in a forked child.
    bool noticed_ = false;
};

} // namespace coaccel::detail

#endif
