#ifndef COACCEL_SERVE_RATE_LIMITER_HPP
#define COACCEL_SERVE_RATE_LIMITER_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/serve/detail/rate_limiter_state.hpp>

#include <boost/asio/async_result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace coaccel::serve {

/// Limits how many requests each tenant may send: a token bucket for each.
///
///     BOOST_OUTCOME_TRY(auto limiter, rate_limiter::create(ex, options));
///     BOOST_OUTCOME_TRY(const auto may, limiter.try_acquire(tenant));
///     if (!may)
///         reply(429, "Retry-After", may.retry_after_seconds());
///
/// It counts requests as they arrive, whether the device is busy or not. To divide a busy device, use fair_share.
///
/// A value type: copies refer to the same limiter. After the last copy is destroyed, requests that wait still get their
/// tokens.
///
/// Executor: handlers run on their associated executor, or else on the limiter's.
/// Exceptions: create(), try_acquire() and stats() throw std::bad_alloc. An initiating call throws std::bad_alloc;
/// nothing has been started then.
/// Lifetimes: a limiter may outlive its execution context.
/// Thread safety: const functions may be called from any thread, even on the same copy.
class rate_limiter {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to no limiter: its functions return errc::invalid_argument.
    rate_limiter() noexcept = default;

    /// Errors: errc::invalid_option.
    [[nodiscard]] static result<rate_limiter> create(executor_type ex, const rate_limiter_options& options = {})
    {
        BOOST_OUTCOME_TRY(auto state, detail::make_rate_limiter(std::move(ex), options));
        rate_limiter made;
        made.state_ = std::move(state);
        return made;
    }

    /// Takes tokens if they are there and no request waits for them; otherwise says when to try again.
    ///
    /// Errors: errc::invalid_argument for 0 tokens, for more than rate_limit::burst, and for an empty limiter;
    /// errc::actor_stopped.
    [[nodiscard]] result<rate_decision> try_acquire(std::string_view tenant, std::uint64_t tokens = 1) const
    {
        return detail::try_acquire(state_, tenant, tokens);
    }

    /// Waits for tokens, and takes them. Requests of a tenant get them in the order of arrival. Of the options, the
    /// deadline and when_full count: with `when_full::fail` the request does not wait.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the tokens were taken.
    /// Cancellation: total, partial, terminal; no tokens were taken then.
    /// Errors: errc::deadline_exceeded, at once if the tokens are there only after the deadline; errc::queue_full if
    /// rate_limit::max_waiting requests wait, or there is no place for a further tenant; errc::actor_stopped;
    /// operation_aborted; those of try_acquire.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_acquire(std::string tenant, std::uint64_t tokens, const exec_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_acquire{state_}, token, std::move(tenant),
                                                             tokens, how);
    }

    /// As above, without a deadline.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_acquire(std::string tenant, std::uint64_t tokens, Token&& token = {}) const
    {
        return async_acquire(std::move(tenant), tokens, exec_options{}, static_cast<Token&&>(token));
    }

    /// As above, for one token.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_acquire(std::string tenant, Token&& token = {}) const
    {
        return async_acquire(std::move(tenant), 1, exec_options{}, static_cast<Token&&>(token));
    }

    /// Requests that wait complete with errc::actor_stopped, and later ones too.
    void stop() const
    {
        if (state_)
            state_->stop();
    }

    /// The counters, also of each remembered tenant: O(tenants).
    rate_limiter_stats stats() const { return state_ ? state_->stats() : rate_limiter_stats(); }
    executor_type get_executor() const noexcept { return detail::executor_of(state_); }
    explicit operator bool() const noexcept { return state_ != nullptr; }
    friend bool operator==(const rate_limiter& a, const rate_limiter& b) noexcept { return a.state_ == b.state_; }

    /// Adds its metrics to a registry, until the registration is destroyed. Tenants without limits of their own are one
    /// row together, because their number has no bound over time.
    [[nodiscard]] telemetry::registration report_to(const telemetry::registry& where) const
    {
        return state_ ? detail::report(where, state_) : telemetry::registration();
    }

private:
    detail::rate_limiter_ptr state_;
};

} // namespace coaccel::serve

#endif
