#ifndef COACCEL_DEVICE_RESIDENT_HPP
#define COACCEL_DEVICE_RESIDENT_HPP

#include <coaccel/device/detail/resident_state.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace coaccel {

/// Device memory whose contents survive the context: set up again on each new generation of its device, from a copy on
/// the host or by a function. For weights and tables that every request uses.
///
/// Ask for the ref at the beginning of each job, and repeat the job when the context dies meanwhile:
/// `with_retry` around a job that calls `async_get` never sees a stale ref for long.
///
/// A value: copies share one buffer.
///
/// Lifetimes: the refs are good while a copy of this lives and the generation lasts. It keeps its device.
/// Thread safety: const functions from any thread.
template <element T>
class resident {
public:
    using executor_type = asio::any_io_executor;
    /// Makes the buffer, on the executor of the device: uploads it, or computes it there.
    using loader_type = std::function<asio::awaitable<result<buffer<T>>>(device)>;

    /// Keeps `elements` on the host, and uploads them when they are first asked for and on each new generation.
    ///
    /// Preconditions: not an empty `device`.
    resident(device gpu, std::vector<T> elements)
        : resident(std::move(gpu), detail::upload_copy<T>{std::make_shared<const std::vector<T>>(std::move(elements))})
    {}

    /// Calls `loader` when the buffer is first asked for and on each new generation; one call at a time, again when the
    /// context dies under it, as often as a default retry_policy allows.
    ///
    /// Preconditions: not an empty `device`, not an empty function.
    resident(device gpu, loader_type loader)
        : state_(std::make_shared<detail::resident_state<T>>(std::move(gpu), std::move(loader)))
    {}

    /// The elements in the current context.
    ///
    /// Completion signature: void(error_code, ref<T>).
    /// Completes when: they are there; soon when they are there already. Concurrent calls share one loading.
    /// Executor: the handler's, or else the device's.
    /// Cancellation: total, partial, terminal; ends the wait, not the loading.
    /// Errors: what the loader returned, errc::user_exception with its what() when it threw, those of the device. The
    /// next call tries again.
    template <asio::completion_token_for<void(error_code, ref<T>)> Token = default_token>
    auto async_get(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, ref<T>)>(detail::initiate_get<T>(state_), token);
    }

    executor_type get_executor() const noexcept { return state_->executor(); }
    /// Where the elements are.
    const device& get_device() const noexcept { return state_->gpu(); }

private:
    std::shared_ptr<detail::resident_state<T>> state_;
};

} // namespace coaccel

#endif
