#ifndef COACCEL_DEVICE_DEVICE_HPP
#define COACCEL_DEVICE_DEVICE_HPP

#include <coaccel/actor/watch.hpp>
#include <coaccel/detail/control_requests.hpp>
#include <coaccel/detail/side_requests.hpp>
#include <coaccel/device/device_calls.hpp>
#include <coaccel/device/device_options.hpp>
#include <coaccel/device/device_stats.hpp>

#include <boost/asio/async_result.hpp>

#include <memory>
#include <string>
#include <utility>

namespace coaccel {

class device_with;

/// An accelerator with a stable address. The context behind it can die and be replaced.
///
/// A value: copies name the same device. When the last copy goes, the device finishes what it has
/// accepted and stops by itself.
///
/// Executor: handlers run on their associated executor, or else on the device's.
/// Cancellation, of every function: total, partial and terminal. An op that still waits completes with
/// operation_aborted and leaves no trace. One that was started runs to its end: total cancellation is ignored; after
/// partial and terminal it completes with operation_aborted, at once or, when it uses memory of the caller's
/// (async_upload, async_write, async_read, async_submit), once the device has left that. A deadline acts like terminal
/// cancellation.
/// Errors, of every function: errc::device_stopped and errc::device_failed when the device is; errc::context_lost when
/// its context died with the op outstanding; errc::invalid_argument for an empty `device`. Of those that start ops:
/// errc::queue_full; with a deadline also errc::deadline_exceeded. Waiting for pinned memory and compiling are not
/// counted against the queue.
/// Exceptions: an initiating call throws std::bad_alloc when there is no memory for the operation, such as when the
/// handler's allocator throws it; nothing has been started then. Completing asks no allocator for memory on an
/// io_context or a thread_pool, and never the handler's.
/// Lifetimes: a device, its buffers and its watches may outlive their execution context. What is started afterwards is
/// destroyed without being called.
/// Thread safety: const functions from any thread, on the same copy too; assigning to a copy is for one thread at a
/// time.
class COACCEL_DECL device : public device_calls<device> {
public:
    using executor_type = asio::any_io_executor;

    /// Names no device; everything asked of it completes with errc::invalid_argument.
    device() noexcept = default;

    /// Makes a device and waits until it is ready. A deferred call makes a device each time it is started.
    ///
    /// Completion signature: void(error_code, device).
    /// Completes when: the first context is ready, or the restart policy gives up.
    /// Errors: errc::invalid_option, errc::backend_unavailable, or what the backend said last.
    template <class Executor, asio::completion_token_for<void(error_code, device)> Token = default_token>
    static auto async_create(const Executor& ex, const device_options& options, Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, device)>(detail::initiate_create<device>{ex}, token,
                                                                     options);
    }

    /// \copydoc async_create
    template <class Executor, asio::completion_token_for<void(error_code, device)> Token = default_token>
    static auto async_create(const Executor& ex, Token&& token = {})
    {
        return async_create(ex, device_options{}, static_cast<Token&&>(token));
    }

    executor_type get_executor() const noexcept { return detail::executor_of(core()); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    friend bool operator==(const device& a, const device& b) noexcept { return a.handle_ == b.handle_; }

    /// The same device, for ops with these options: `gpu.with(within(1s)).async_exec(op)`.
    device_with with(const exec_options& options) const noexcept;

    /// Allocates host memory that the device copies from and to directly; waits while the limit is reached.
    ///
    /// Completion signature: void(error_code, pinned_buffer<T>).
    /// Errors: errc::invalid_argument for no elements, errc::size_overflow, errc::out_of_memory for more than
    /// there can ever be.
    template <element T, asio::completion_token_for<void(error_code, pinned_buffer<T>)> Token = default_token>
    auto async_alloc_pinned(std::size_t count, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, pinned_buffer<T>)>(
            detail::initiate_request<detail::pinned_request<T>>{core()}, token, count);
    }

    /// Compiles CUDA C++ source for this device, or finds it in the cache on disk; away from the executor, but for
    /// host_mode::in_turn, which has no threads.
    ///
    /// Completion signature: void(error_code, jit::kernel).
    /// Errors: errc::compile_failed, whose message is the compiler's log; errc::library_missing without NVRTC.
    /// Cancellation: completes at once; the compiler is left to end by itself.
    template <asio::completion_token_for<void(error_code, jit::kernel)> Token = default_token>
    auto async_compile(std::string source, jit::compile_options how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, jit::kernel)>(
            detail::initiate_request<detail::compile_request>{core()}, token, std::move(source), std::move(how));
    }

    /// What the device is doing and has done. Answered in every state but for an empty `device`.
    ///
    /// Completion signature: void(error_code, device_stats).
    template <asio::completion_token_for<void(error_code, device_stats)> Token = default_token>
    auto async_stats(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, device_stats)>(
            detail::initiate_request<detail::stats_request>{core()}, token);
    }

    /// Moves the device to a fresh context on purpose, without failing anything that can wait.
    ///
    /// Nothing further is started until then; what was started runs to its end. Refs of the old context are
    /// errc::stale_ref afterwards, as after a fault. It does not count against the restart budget.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: a context made after the call is in place. Several calls may share one.
    /// Cancellation: completes at once; the replacement goes on.
    /// Errors: what the backend said when it could not make a context; the restart policy then goes on as after any
    /// failed start. errc::device_stopped, errc::device_failed.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_replace(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::replace_request>{core()},
                                                             token);
    }

    /// Brings a device that has failed back, at the same address: with a context and a new restart budget.
    ///
    /// Refs of earlier contexts are errc::stale_ref. Ops that come while the context is made wait for it.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the device has a context; at once for one that is healthy. Several calls may share one context.
    /// Cancellation: completes at once; the attempt goes on.
    /// Errors: why the last context could not be made, when the restart policy gives up again. errc::device_stopped.
    /// errc::device_failed when no context can follow in this process, as after a fault of a GPU without a worker.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_revive(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::revive_request>{core()},
                                                             token);
    }

    /// Stops the device. Ops that come later complete with errc::device_stopped.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the device has stopped, also for the second and every further call. A later
    /// `abandon` hurries an earlier `drain`.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(shutdown mode, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::shutdown_request>{core()},
                                                             token, mode);
    }

    /// \copydoc async_shutdown
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(Token&& token = {}) const
    {
        return async_shutdown(shutdown::drain, static_cast<Token&&>(token));
    }

    /// Cancels every op the device has accepted so far, as terminal cancellation of each of them would.
    void cancel() const;

    /// Where the device stands now.
    device_status status() const;

    /// Follows the device's state. `busy` is not published, for that would cost more than an op.
    ///
    /// Preconditions: not an empty `device`.
    watch<device_status> watch_state() const;

    /// Follows the device's generation; a value is published after its context is in place.
    ///
    /// Preconditions: not an empty `device`.
    watch<coaccel::generation> watch_generation() const;

private:
    friend class detail::start_request<device>;
    friend class device_calls<device>;
    friend class device_with;

    explicit device(std::shared_ptr<detail::device_handle> handle) noexcept : handle_(std::move(handle)) {}

    static exec_options options() noexcept { return {}; }
    detail::core_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }

    std::shared_ptr<detail::device_handle> handle_;
};

/// A device together with options for the ops that are started through it, which are those of `device`:
/// `gpu.with(options)`. Keeps the device as a copy of it does.
class device_with : public device_calls<device_with> {
public:
    /// Made by device::with.
    device_with(device gpu, const exec_options& options) noexcept : device_(std::move(gpu)), options_(options) {}

    /// What its operations are run with.
    const exec_options& options() const noexcept { return options_; }

private:
    friend class device_calls<device_with>;

    detail::core_ptr core() const noexcept { return device_.core(); }

    device device_;
    exec_options options_;
};

inline device_with device::with(const exec_options& options) const noexcept
{
    return {*this, options};
}

} // namespace coaccel

#endif
