#ifndef COACCEL_SERVE_BATCHER_CALLS_HPP
#define COACCEL_SERVE_BATCHER_CALLS_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/device/shutdown.hpp>
#include <coaccel/serve/detail/batcher_access.hpp>

#include <boost/asio/async_result.hpp>

#include <memory>
#include <utility>

namespace coaccel::serve {

/// The calls that dynamic_batcher and function_batcher have in common. Only a base of these.
class batcher_calls {
public:
    using executor_type = asio::any_io_executor; ///< The type of the batcher's executor.

    /// Stops the batcher. Later requests complete with errc::actor_stopped. `shutdown::drain` lets accepted requests
    /// end first; with `shutdown::abandon` they complete with errc::actor_stopped.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all batches have ended.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(shutdown mode, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(
            detail::initiate_control<detail::control_request>{core()}, token,
            mode == shutdown::drain ? detail::batch_control::verb::drain : detail::batch_control::verb::abandon);
    }

    /// Lets what has given up work again: plans that are quarantined because too many of their batches have ended a
    /// context, and a batcher that has failed because its function did, with a new restart budget. Does nothing
    /// otherwise.
    ///
    /// Completion signature: void(error_code).
    /// Errors: errc::actor_stopped.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_revive(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_control<detail::control_request>{core()},
                                                             token, detail::batch_control::verb::revive);
    }

    /// The executor of the batcher; the system executor if it is empty.
    executor_type get_executor() const noexcept { return detail::executor_of(core()); }

    /// The counters. Thread safety: any thread. Exceptions: std::bad_alloc.
    batcher_stats stats() const { return handle_ ? handle_->stats() : batcher_stats(); }

    /// Adds its metrics to a registry, until the registration is destroyed. The batcher lives at least as long.
    [[nodiscard]] telemetry::registration report_to(const telemetry::registry& where) const
    {
        return handle_ ? detail::report(where, core()) : telemetry::registration();
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; } ///< False for an empty batcher.

protected:
    batcher_calls() noexcept = default;
    /// Called by the batchers.
    explicit batcher_calls(std::shared_ptr<detail::batcher_handle> handle) noexcept : handle_(std::move(handle)) {}
    batcher_calls(const batcher_calls&) noexcept = default; ///< Refers to the same batcher.
    batcher_calls(batcher_calls&&) noexcept = default;
    batcher_calls& operator=(const batcher_calls&) noexcept = default; ///< Refers to the same batcher.
    batcher_calls& operator=(batcher_calls&&) noexcept = default;
    ~batcher_calls() = default;

    /// Null for an empty batcher.
    const std::shared_ptr<detail::batcher_handle>& handle() const noexcept { return handle_; }
    /// Null for an empty batcher.
    detail::batcher_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }

private:
    std::shared_ptr<detail::batcher_handle> handle_;
};

} // namespace coaccel::serve

#endif
