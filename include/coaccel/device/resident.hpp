#ifndef COACCEL_DEVICE_RESIDENT_HPP
#define COACCEL_DEVICE_RESIDENT_HPP

#include <coaccel/device/detail/resident_state.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace coaccel {

template <element T>
class resident_with;

/// Device memory whose contents survive the loss of a context: they are loaded again in each new generation of its
/// device, from a copy on the host or by a function. For weights and tables that every request uses.
///
/// Get the ref at the beginning of each job, and repeat the job if the context dies meanwhile: `with_retry` around a
/// job that calls `async_get` recovers from stale refs.
///
/// While its device rebuilds, `async_get` waits. A deadline bounds this wait:
/// `weights.with(within(500ms)).async_get()`. The deadline of a `with` on the device does not apply to its residents.
///
/// With isolation::worker, elements that are kept on the host and have at least 2 MiB are in memory that all workers of
/// the device share and that outlives them: a new worker maps it instead of receiving an upload. Their ref is valid in
/// later generations too, and ops can only read them: one that writes completes with errc::invalid_argument. Where the
/// backend cannot export memory, they are uploaded to each worker.
///
/// A value type: copies share one buffer.
///
/// Exceptions: the constructors and initiating calls throw std::bad_alloc; no loading is started then.
/// Lifetimes: a ref is valid while a copy of this object exists and the generation lasts. The object keeps its device
/// alive.
/// Thread safety: const functions may be called from any thread.
template <element T>
class resident {
public:
    using executor_type = asio::any_io_executor;
    /// Creates the buffer, on the executor of the device: uploads its contents or computes them on the device.
    using loader_type = std::function<asio::awaitable<result<buffer<T>>>(device)>;

    /// Keeps `elements` on the host, and uploads them at the first async_get of each generation, or of all generations
    /// if workers share them.
    ///
    /// Preconditions: not an empty `device`.
    resident(device gpu, std::vector<T> elements)
        : resident(std::move(gpu), detail::upload_copy<T>{std::make_shared<const std::vector<T>>(std::move(elements))})
    {}

    /// Calls `loader` at the first async_get of each generation, one call at a time. Calls it again if the context dies
    /// during the call, as often as a default retry_policy allows.
    ///
    /// Preconditions: not an empty `device`, not an empty function.
    resident(device gpu, loader_type loader)
        : state_(std::make_shared<detail::resident_state<T>>(std::move(gpu), std::move(loader)))
    {}

    /// The same elements with these options for async_get. Only the deadline is used.
    resident_with<T> with(const exec_options& options) const noexcept;

    /// Gets a ref to the elements in the current context. Without a deadline it waits until the device has rebuilt its
    /// context or has failed.
    ///
    /// Completion signature: void(error_code, ref<T>).
    /// Completes when: the elements are loaded; soon if they already are. Concurrent calls share one call of the
    /// loader.
    /// Executor: the handler's, or else the device's.
    /// Cancellation: total, partial, terminal; ends the wait, not the loading.
    /// Errors: those of the loader, errc::user_exception with the message of the exception if it threw, those of the
    /// device. The next call tries again.
    template <asio::completion_token_for<void(error_code, ref<T>)> Token = default_token>
    auto async_get(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, ref<T>)>(detail::initiate_get<T>(state_), token,
                                                                     exec_options::no_deadline);
    }

    executor_type get_executor() const noexcept { return state_->executor(); }
    /// The device that holds the elements.
    const device& get_device() const noexcept { return state_->gpu(); }

private:
    friend class resident_with<T>;

    std::shared_ptr<detail::resident_state<T>> state_;
};

/// A resident together with options for async_get: `weights.with(options)`. It keeps the elements alive as a copy of
/// the resident does.
///
/// Only the deadline is used. The other options describe one op, and async_get starts none for its caller: the loader
/// starts the ops, with its own options, for all callers. They are ignored, so that one exec_options can serve all
/// calls of a request.
///
/// Exceptions: initiating calls throw std::bad_alloc; see `resident`.
template <element T>
class resident_with {
public:
    /// Called by resident::with.
    resident_with(resident<T> elements, const exec_options& options) noexcept
        : resident_(std::move(elements)), options_(options)
    {}

    /// As resident::async_get, until the deadline at the latest.
    ///
    /// Completion signature: void(error_code, ref<T>).
    /// Completes when: the elements are loaded, or the deadline passes. The deadline ends the wait, not the loading,
    /// which serves other and later calls.
    /// Errors: those of resident::async_get; errc::deadline_exceeded. If the deadline has passed before the call, no
    /// loading is started.
    template <asio::completion_token_for<void(error_code, ref<T>)> Token = default_token>
    auto async_get(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, ref<T>)>(detail::initiate_get<T>(resident_.state_), token,
                                                                     options_.deadline);
    }

    /// The options of its calls.
    const exec_options& options() const noexcept { return options_; }

private:
    resident<T> resident_;
    exec_options options_;
};

template <element T>
resident_with<T> resident<T>::with(const exec_options& options) const noexcept
{
    return {*this, options};
}

} // namespace coaccel

#endif
