#ifndef COACCEL_DEVICE_DEVICE_HPP
#define COACCEL_DEVICE_DEVICE_HPP

#include <coaccel/actor/watch.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/detail/buffer_requests.hpp>
#include <coaccel/detail/control_requests.hpp>
#include <coaccel/detail/exec_requests.hpp>
#include <coaccel/detail/side_requests.hpp>
#include <coaccel/detail/submit_arguments.hpp>
#include <coaccel/detail/temporary_range.hpp>
#include <coaccel/device/device_options.hpp>
#include <coaccel/device/device_stats.hpp>
#include <coaccel/device/seq.hpp>

#include <boost/asio/async_result.hpp>

#include <memory>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

namespace coaccel {

/// Elements that lie side by side in host memory.
template <class Range>
concept element_range = std::ranges::contiguous_range<Range> && element<std::ranges::range_value_t<Range>>;

/// How an upload of a range completes.
template <element_range Range>
using upload_signature = void(error_code, buffer<std::ranges::range_value_t<Range>>);

/// What new memory holds.
enum class init : std::uint8_t { none, zero };

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
/// errc::queue_full; with exec_options also errc::deadline_exceeded. Waiting for pinned memory and compiling are not
/// counted against the queue.
/// Exceptions: an initiating call throws std::bad_alloc when there is no memory for the operation, such as when the
/// handler's allocator throws it; nothing has been started then. Completing asks no allocator for memory on an
/// io_context or a thread_pool, and never the handler's.
/// Lifetimes: a device, its buffers and its watches may outlive their execution context. What is started afterwards is
/// destroyed without being called.
/// Thread safety: const functions from any thread, on the same copy too; assigning to a copy is for one thread at a
/// time.
class COACCEL_DECL device {
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
    friend bool operator==(const device&, const device&) = default;

    /// The same device, for ops with these options: `gpu.with(within(1s)).async_exec(op)`.
    device_with with(const exec_options& options) const noexcept;

    /// Runs one op.
    ///
    /// Completion signature: void(error_code), or void(error_code, Op::reply).
    /// Completes when: the op has ended on the device.
    /// Order: ops on the same elements of a buffer run in the order in which one caller started them, awaited or not.
    /// Lifetimes: the op is copied; buffers it names may be released at any time.
    /// Errors: those of a bad op or ref (fault::caller), and the backend's.
    template <op Op, asio::completion_token_for<exec_signature<Op>> Token = default_token>
    auto async_exec(const Op& op, const exec_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, exec_signature<Op>>(
            detail::initiate_request<detail::exec_request<Op>>{core()}, token, op, how);
    }

    /// \copydoc async_exec
    template <op Op, asio::completion_token_for<exec_signature<Op>> Token = default_token>
    auto async_exec(const Op& op, Token&& token = {}) const
    {
        return async_exec(op, exec_options{}, static_cast<Token&&>(token));
    }

    /// Runs several ops in order, with one completion.
    ///
    /// Completion signature: void(error_code), or void(error_code, std::tuple<replies...>).
    template <op... Ops, asio::completion_token_for<seq_signature<Ops...>> Token = default_token>
    auto async_exec(const op_seq<Ops...>& ops, const exec_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, seq_signature<Ops...>>(
            detail::initiate_request<detail::seq_request<Ops...>>{core()}, token, ops, how);
    }

    /// \copydoc async_exec
    template <op... Ops, asio::completion_token_for<seq_signature<Ops...>> Token = default_token>
    auto async_exec(const op_seq<Ops...>& ops, Token&& token = {}) const
    {
        return async_exec(ops, exec_options{}, static_cast<Token&&>(token));
    }

    /// Runs a function of the caller's as an op: `async_submit(in(a), out(b), function)`.
    ///
    /// The function is called as `function(native_stream, span<const A>, span<B>)`, one span for each
    /// operand, over device memory. On a GPU it enqueues work on the stream and returns; on the host it
    /// does the work itself, on a thread of the backend. It counts as one command of the stream however many kernels it
    /// launches, so it should launch fewer than about 300: a driver whose launch queue is full blocks the device.
    ///
    /// Completion signature: void(error_code).
    /// Errors: errc::user_exception when the function threw.
    template <class... Args>
    auto async_submit(Args&&... args) const
    {
        return detail::split_submit(core(), exec_options{}, static_cast<Args&&>(args)...);
    }

    /// Allocates memory for `count` elements.
    ///
    /// Completion signature: void(error_code, buffer<T>).
    /// Errors: errc::invalid_argument for no elements, errc::size_overflow, errc::out_of_memory.
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, init content, const exec_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, buffer<T>)>(
            detail::initiate_request<detail::alloc_request<T>>{core()}, token, count, content == init::zero, how);
    }

    /// \copydoc async_alloc
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, const exec_options& how, Token&& token = {}) const
    {
        return async_alloc<T>(count, init::none, how, static_cast<Token&&>(token));
    }

    /// \copydoc async_alloc
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, init content, Token&& token = {}) const
    {
        return async_alloc<T>(count, content, exec_options{}, static_cast<Token&&>(token));
    }

    /// \copydoc async_alloc
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_alloc(std::size_t count, Token&& token = {}) const
    {
        return async_alloc<T>(count, init::none, static_cast<Token&&>(token));
    }

    /// Allocates memory that the host reaches too.
    ///
    /// Completion signature: void(error_code, managed_buffer<T>).
    /// Errors: those of async_alloc.
    template <element T, asio::completion_token_for<void(error_code, managed_buffer<T>)> Token = default_token>
    auto async_alloc_managed(std::size_t count, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, managed_buffer<T>)>(
            detail::initiate_request<detail::managed_request<T>>{core()}, token, count);
    }

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

    /// Allocates memory and copies `data` into it.
    ///
    /// Completion signature: void(error_code, buffer<T>).
    /// Lifetimes: `data` stays valid until completion. A temporary lasts as long as the expression it is in: long
    /// enough for `co_await`, not for a callback or a future, for which it does not compile.
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_upload(std::span<const T> data, const exec_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, buffer<T>)>(
            detail::initiate_request<detail::upload_request<T>>{core()}, token, data, how);
    }

    /// \copydoc async_upload
    template <element T, asio::completion_token_for<void(error_code, buffer<T>)> Token = default_token>
    auto async_upload(std::span<const T> data, Token&& token = {}) const
    {
        return async_upload<T>(data, exec_options{}, static_cast<Token&&>(token));
    }

    /// \copydoc async_upload
    template <element_range Range, asio::completion_token_for<upload_signature<Range>> Token = default_token>
    auto async_upload(const Range& data, const exec_options& how, Token&& token = {}) const
    {
        using value = std::ranges::range_value_t<Range>;
        return async_upload<value>(std::span<const value>(data), how, static_cast<Token&&>(token));
    }

    /// \copydoc async_upload
    template <element_range Range, asio::completion_token_for<upload_signature<Range>> Token = default_token>
    auto async_upload(const Range& data, Token&& token = {}) const
    {
        return async_upload(data, exec_options{}, static_cast<Token&&>(token));
    }

    /// Of a temporary: with a token that starts the upload at once this does not compile, because the elements would be
    /// gone before they are copied.
    template <element_range Range, asio::completion_token_for<upload_signature<Range>> Token = default_token>
        requires(!std::ranges::borrowed_range<Range>)
    auto async_upload(Range&& data, const exec_options& how, Token&& token = {}) const
    {
        using value = std::ranges::range_value_t<Range>;
        const std::span<const value> elements(data);
        using started = decltype(async_upload<value>(elements, how, static_cast<Token&&>(token)));
        static_assert(starts_when_awaited<started>, COACCEL_TEMPORARY_RANGE);
        return async_upload<value>(elements, how, static_cast<Token&&>(token));
    }

    /// \copydoc async_upload
    template <element_range Range, asio::completion_token_for<upload_signature<Range>> Token = default_token>
        requires(!std::ranges::borrowed_range<Range>)
    auto async_upload(Range&& data, Token&& token = {}) const
    {
        return async_upload(static_cast<Range&&>(data), exec_options{}, static_cast<Token&&>(token));
    }

    /// Copies device memory into a new vector.
    ///
    /// Completion signature: void(error_code, std::vector<T>).
    template <element T, asio::completion_token_for<void(error_code, std::vector<T>)> Token = default_token>
    auto async_download(ref<T> source, const exec_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, std::vector<T>)>(
            detail::initiate_request<detail::download_request<T>>{core()}, token, source, how);
    }

    /// \copydoc async_download
    template <element T, asio::completion_token_for<void(error_code, std::vector<T>)> Token = default_token>
    auto async_download(ref<T> source, Token&& token = {}) const
    {
        return async_download(source, exec_options{}, static_cast<Token&&>(token));
    }

    /// \copydoc async_download
    template <element T, asio::completion_token_for<void(error_code, std::vector<T>)> Token = default_token>
    auto async_download(const buffer<T>& source, const exec_options& how, Token&& token = {}) const
    {
        return async_download(source.ref(), how, static_cast<Token&&>(token));
    }

    /// \copydoc async_download
    template <element T, asio::completion_token_for<void(error_code, std::vector<T>)> Token = default_token>
    auto async_download(const buffer<T>& source, Token&& token = {}) const
    {
        return async_download(source.ref(), exec_options{}, static_cast<Token&&>(token));
    }

    /// Copies `data` over device memory of the same length.
    ///
    /// Completion signature: void(error_code).
    /// Lifetimes: `data` stays valid until completion.
    /// Errors: errc::length_mismatch.
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_write(ref<T> target, std::span<const std::type_identity_t<T>> data, const exec_options& how,
                     Token&& token = {}) const
    {
        return async_exec(detail::write_op<T>{.dst = target, .src = data.data(), .count = data.size()}, how,
                          static_cast<Token&&>(token));
    }

    /// \copydoc async_write
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_write(ref<T> target, std::span<const std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_write(target, data, exec_options{}, static_cast<Token&&>(token));
    }

    /// \copydoc async_write
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_write(const buffer<T>& target, std::span<const std::type_identity_t<T>> data, const exec_options& how,
                     Token&& token = {}) const
    {
        return async_write(target.ref(), data, how, static_cast<Token&&>(token));
    }

    /// \copydoc async_write
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_write(const buffer<T>& target, std::span<const std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_write(target.ref(), data, exec_options{}, static_cast<Token&&>(token));
    }

    /// Of a temporary: as for async_upload.
    template <class Target, element_range Range, asio::completion_token_for<void(error_code)> Token = default_token>
        requires(!std::ranges::borrowed_range<Range>)
    auto async_write(const Target& target, Range&& data, const exec_options& how, Token&& token = {}) const
    {
        const std::span<const std::ranges::range_value_t<Range>> elements(data);
        using started = decltype(async_write(target, elements, how, static_cast<Token&&>(token)));
        static_assert(starts_when_awaited<started>, COACCEL_TEMPORARY_RANGE);
        return async_write(target, elements, how, static_cast<Token&&>(token));
    }

    /// \copydoc async_write
    template <class Target, element_range Range, asio::completion_token_for<void(error_code)> Token = default_token>
        requires(!std::ranges::borrowed_range<Range>)
    auto async_write(const Target& target, Range&& data, Token&& token = {}) const
    {
        return async_write(target, static_cast<Range&&>(data), exec_options{}, static_cast<Token&&>(token));
    }

    /// Copies device memory over `data`, which has the same length.
    ///
    /// Completion signature: void(error_code).
    /// Lifetimes: `data` stays valid until completion.
    /// Errors: errc::length_mismatch.
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_read(ref<T> source, std::span<std::type_identity_t<T>> data, const exec_options& how,
                    Token&& token = {}) const
    {
        return async_exec(detail::read_op<T>{.src = source, .dst = data.data(), .count = data.size()}, how,
                          static_cast<Token&&>(token));
    }

    /// \copydoc async_read
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_read(ref<T> source, std::span<std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_read(source, data, exec_options{}, static_cast<Token&&>(token));
    }

    /// \copydoc async_read
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_read(const buffer<T>& source, std::span<std::type_identity_t<T>> data, const exec_options& how,
                    Token&& token = {}) const
    {
        return async_read(source.ref(), data, how, static_cast<Token&&>(token));
    }

    /// \copydoc async_read
    template <element T, asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_read(const buffer<T>& source, std::span<std::type_identity_t<T>> data, Token&& token = {}) const
    {
        return async_read(source.ref(), data, exec_options{}, static_cast<Token&&>(token));
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
    friend class device_with;

    explicit device(std::shared_ptr<detail::device_handle> handle) noexcept : handle_(std::move(handle)) {}

    detail::core_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }

    std::shared_ptr<detail::device_handle> handle_;
};

} // namespace coaccel

#include <coaccel/device/device_with.hpp>

#endif
