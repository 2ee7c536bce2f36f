#ifndef COACCEL_DEVICE_DEVICE_HPP
#define COACCEL_DEVICE_DEVICE_HPP

#include <coaccel/actor/watch.hpp>
#include <coaccel/device/detail/control_requests.hpp>
#include <coaccel/device/detail/durable_requests.hpp>
#include <coaccel/device/detail/pinned_compile_requests.hpp>
#include <coaccel/device/device_calls.hpp>
#include <coaccel/device/device_options.hpp>
#include <coaccel/device/device_stats.hpp>
#include <coaccel/device/plan_options.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <boost/asio/async_result.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <utility>

namespace coaccel::detail {

template <class T>
struct upload_copy;

} // namespace coaccel::detail

namespace coaccel {

class device_with;

/// An accelerator with a stable identity. The context behind it can die and be replaced.
///
/// A value type: copies refer to the same device. After the last copy is destroyed, the device finishes the work that
/// it has accepted and stops.
///
/// Executor: handlers run on their associated executor, or else on the device's.
/// Cancellation, of every function: total, partial and terminal. An op that still waits completes with
/// operation_aborted and has no effect. A started op runs to its end: total cancellation is ignored; after partial and
/// terminal cancellation it completes with operation_aborted, at once or, if it uses the caller's memory (async_upload,
/// async_write, async_read, async_submit), once the device no longer accesses that memory. A deadline acts like
/// terminal cancellation.
/// Errors, of every function: errc::device_stopped and errc::device_failed if the device has stopped or failed;
/// errc::context_lost if its context died while the op was outstanding; errc::invalid_argument for an empty `device`.
/// Functions that start ops also report errc::queue_full and, with a deadline, errc::deadline_exceeded. Waiting for
/// pinned memory and compiling do not count against the queue.
/// Exceptions: an initiating call throws std::bad_alloc if there is no memory for the operation, for example because
/// the handler's allocator throws it; nothing has been started then. Emitting a cancellation signal can also throw
/// std::bad_alloc; nothing is cancelled then. Completion never uses the handler's allocator, and on an io_context or a
/// thread_pool it allocates nothing. There is no recovery if the device itself runs out of host memory while it works:
/// std::bad_alloc leaves the run() of its executor or an initiating call, and the device does no further work.
/// Lifetimes: a device, its buffers and its watches may outlive their execution context. Operations started afterwards
/// are destroyed without calling their handlers.
/// Thread safety: const functions may be called from any thread, even on the same copy; assignment to a copy needs
/// exclusive access.
class COACCEL_DECL device : public device_calls<device> {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to no device; its operations complete with errc::invalid_argument.
    device() noexcept = default;

    /// Creates a device and waits until it is ready. A deferred call creates a device each time it is started.
    ///
    /// Completion signature: void(error_code, device).
    /// Completes when: the first context is ready, or the restart policy gives up.
    /// Errors: errc::invalid_option, errc::backend_unavailable, or the last error of the backend.
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

    /// The same device with these options for its ops: `gpu.with(within(1s)).async_exec(op)`.
    device_with with(const exec_options& options) const noexcept;

    /// Allocates host memory that the device copies from and to directly. Waits while the limit is reached.
    ///
    /// Completion signature: void(error_code, pinned_buffer<T>).
    /// Errors: errc::invalid_argument for zero elements, errc::size_overflow, errc::out_of_memory if the size can never
    /// be available.
    template <element T, asio::completion_token_for<void(error_code, pinned_buffer<T>)> Token = default_token>
    auto async_alloc_pinned(std::size_t count, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, pinned_buffer<T>)>(
            detail::initiate_request<detail::pinned_request<T>>{core()}, token, count);
    }

    /// Allocates memory that outlives the contexts of the device, filled with zeros. Its refs are valid in every
    /// generation, and its content survives the loss of a context: this process holds the memory, not the worker.
    ///
    /// After a loss that may have left the buffer half-written, ops that use it complete with errc::buffer_suspect
    /// until async_trust or async_clear was called for it. After a fault this holds for all durable buffers; after an
    /// end of the worker from outside, such as by SIGKILL, for those that unfinished ops write.
    ///
    /// Completion signature: void(error_code, durable_buffer<T>).
    /// Completes when: the memory can be used. If the context is lost meanwhile, it goes on in the next one.
    /// Cancellation: completes at once; what has been allocated is released.
    /// Errors: errc::invalid_argument for zero elements, errc::size_overflow, errc::out_of_memory, also if no file
    /// descriptor is left; errc::unsupported_op on a device without isolation::worker, and with a backend that cannot
    /// export memory.
    template <element T, asio::completion_token_for<void(error_code, durable_buffer<T>)> Token = default_token>
    auto async_alloc_durable(std::size_t count, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, durable_buffer<T>)>(
            detail::initiate_request<detail::durable_request<T>>{core()}, token, count);
    }

    /// Permits ops on a durable buffer with the content that it has, whatever that is. Does nothing if it is not
    /// suspect.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: ops may use the buffer; soon, also while the device has no context.
    /// Errors: errc::invalid_argument for an empty buffer, errc::wrong_device, errc::released_ref.
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_trust(const durable_buffer<T>& content, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::trust_request>{core()},
                                                             token, content.ref().raw());
    }

    /// Fills a durable buffer with zeros, and permits ops on it. They may be started without awaiting this call, and
    /// run after it, also if it fails.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the buffer is filled.
    /// Errors: those of async_exec. After an error, a buffer that was suspect still is.
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_clear(const durable_buffer<T>& content, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::clear_request<T>>{core()},
                                                             token, content.ref(), exec_options{});
    }

    /// Compiles CUDA C++ source for this device, or loads the result from the cache on disk. The compiler runs outside
    /// the executor, except with host_mode::inline_, which has no threads.
    ///
    /// Completion signature: void(error_code, jit::kernel).
    /// Errors: errc::compile_failed, whose message is the compiler's log; errc::library_missing without NVRTC.
    /// Cancellation: completes at once; the compiler runs to its end.
    template <asio::completion_token_for<void(error_code, jit::kernel)> Token = default_token>
    auto async_compile(std::string source, jit::compile_options how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, jit::kernel)>(
            detail::initiate_request<detail::compile_request>{core()}, token, std::move(source), std::move(how));
    }

    /// Loads a plan: uploads its constants and makes its first instances, on a GPU as graphs. A device loads one plan
    /// at a time. The same plan may be loaded several times, and on several devices; equal constants exist once per
    /// device.
    ///
    /// Completion signature: void(error_code, plan).
    /// Completes when: the plan can run.
    /// Cancellation: completes at once; what has been loaded is released.
    /// Errors: errc::invalid_argument for an empty description, errc::invalid_option, errc::out_of_memory,
    /// errc::unsupported_op, and those of the ops. errc::context_lost if loading the plan ended the context twice while
    /// nothing else was on it. From then on, errc::plan_quarantined for this plan and for any other with the same id,
    /// without an attempt: for one minute, and for twice as long each time that the load ends contexts again, up to one
    /// hour. async_revive ends this, and so does plan::async_revive of a loaded plan with the same id. A device
    /// remembers at most 16 such plans.
    template <class Token = default_token>
    auto async_load(plan_description described, plan_options how, Token&& token = {}) const;

    /// \copydoc async_load(plan_description,plan_options,Token&&) const
    template <class Token = default_token>
        requires(!std::convertible_to<Token, plan_options>)
    auto async_load(plan_description described, Token&& token = {}) const;

    /// Loads all plans of a set, or none: if one of them cannot be loaded, what has been loaded is released before the
    /// call completes. The options apply to each plan.
    ///
    /// Completion signature: void(error_code, plan_set).
    /// Completes when: all plans can run.
    /// Cancellation: completes at once; what has been loaded is released.
    /// Errors: as for one plan; the message names the plan.
    template <class Token = default_token>
    auto async_load(plan_set_description described, plan_options how, Token&& token = {}) const;

    /// \copydoc async_load(plan_set_description,plan_options,Token&&) const
    template <class Token = default_token>
        requires(!std::convertible_to<Token, plan_options>)
    auto async_load(plan_set_description described, Token&& token = {}) const;

    /// Records ops over existing buffers, which `async_exec` then runs as one command: on a GPU as one CUDA graph, on
    /// the CPU as one task. Nothing is computed in the buffers; on a GPU the ops run once on a copy of the buffers that
    /// they write, for which there must be memory.
    ///
    /// Completion signature: void(error_code, graph).
    /// Completes when: the graph can run.
    /// Cancellation: completes at once; what has been recorded is released.
    /// Lifetimes: the graph keeps the memory of the buffers.
    /// Errors: errc::invalid_argument for an empty list and for an op that cannot be recorded or whose reply is its
    /// only effect, errc::out_of_memory, errc::unsupported_op, and those of invalid ops and refs.
    template <class Token = default_token>
    auto async_record(op_list ops, Token&& token = {}) const;

    /// \copydoc async_record
    template <op... Ops, class Token = default_token>
    auto async_record(const op_seq<Ops...>& ops, Token&& token = {}) const;

    /// The current state and the counters of the device. Available in every state, but not for an empty `device`.
    ///
    /// Completion signature: void(error_code, device_stats).
    template <asio::completion_token_for<void(error_code, device_stats)> Token = default_token>
    auto async_stats(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, device_stats)>(
            detail::initiate_request<detail::stats_request>{core()}, token);
    }

    /// Replaces the context of the device on request, without failing requests that can wait.
    ///
    /// No op is started until the new context is in place; started ops run to their end. Refs of the old context cause
    /// errc::stale_ref afterwards, as after a fault. The replacement does not count against the restart budget.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: a context created after the call is in place. Several calls may share one context.
    /// Cancellation: completes at once; the replacement continues.
    /// Errors: the error of the backend if it could not create a context; the restart policy then continues as after
    /// any failed start. errc::device_stopped, errc::device_failed.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_replace(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::replace_request>{core()},
                                                             token);
    }

    /// Revives a failed device, with a new context and a new restart budget. The device keeps its identity. In any
    /// state, async_load accepts again the plans that it refuses with errc::plan_quarantined.
    ///
    /// Refs of earlier contexts cause errc::stale_ref. Ops that arrive while the context is being created wait for it.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the device has a context; at once if it is healthy. Several calls may share one context.
    /// Cancellation: completes at once; the attempt continues.
    /// Errors: why the last context could not be created, if the restart policy gives up again. errc::device_stopped.
    /// errc::device_failed if no further context can be created in this process, as after a fault of a GPU without a
    /// worker.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_revive(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::revive_request>{core()},
                                                             token);
    }

    /// Stops the device. Later ops complete with errc::device_stopped.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the device has stopped, also for repeated calls. A later `abandon` overrides an earlier `drain`.
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

    /// Cancels every op that the device has accepted so far, like terminal cancellation of each.
    ///
    /// Exceptions: std::bad_alloc; nothing is cancelled then.
    void cancel() const;

    /// The current state of the device.
    ///
    /// Exceptions: none.
    device_status status() const;

    /// Observes the device's state. `busy` is not published, because publishing it would cost more than an op.
    ///
    /// Preconditions: not an empty `device`.
    /// Exceptions: std::bad_alloc.
    watch<device_status> watch_state() const;

    /// Observes the device's generation; a value is published after its context is in place.
    ///
    /// Preconditions: not an empty `device`.
    /// Exceptions: std::bad_alloc.
    watch<coaccel::generation> watch_generation() const;

private:
    friend class detail::start_request<device>;
    template <class T>
    friend struct detail::upload_copy;
    friend class device_calls<device>;
    friend class device_with;

    explicit device(std::shared_ptr<detail::device_handle> handle) noexcept : handle_(std::move(handle)) {}

    static exec_options options() noexcept { return {}; }
    detail::core_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }

    std::shared_ptr<detail::device_handle> handle_;
};

/// A device together with options for the ops that are started through it: `gpu.with(options)`. It has the functions of
/// `device` that start ops, and keeps the device alive as a copy of it does.
///
/// Exceptions: initiating calls throw std::bad_alloc; see `device`.
class device_with : public device_calls<device_with> {
public:
    /// Called by device::with.
    device_with(device gpu, const exec_options& options) noexcept : device_(std::move(gpu)), options_(options) {}

    /// The options of its ops.
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

// The functions of device that concern plans and graphs are defined there.
#include <coaccel/device/graph.hpp>
#include <coaccel/device/plan.hpp>

#endif
