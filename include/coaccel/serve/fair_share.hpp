#ifndef COACCEL_SERVE_FAIR_SHARE_HPP
#define COACCEL_SERVE_FAIR_SHARE_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/serve/detail/fair_share_state.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <utility>

namespace coaccel::serve {

/// Divides the time of a device among tenants, by weights: weighted fair queueing, where the cost of a request is the
/// device time that it used, not the number of requests.
///
///     BOOST_OUTCOME_CO_TRY(auto share, fair_share::create(ex, options));
///     BOOST_OUTCOME_CO_TRY(auto turn, co_await share.async_enter(tenant));          // waits for its turn
///     auto answered = co_await classify.async_run(from(x), to(y));
///     turn.finish(device_time);                                                     // or at its destruction
///
/// A request waits for a turn and gets a permit, like a lock that is held for the length of the work. So the work can
/// be anything: a plan, a batcher, several calls one after another, with any kind of completion token in between. A
/// queue that called a function of the user would have to know how the work is started, how it is cancelled, and what
/// it returns. A turn cannot be lost: a permit whose owner fails, is cancelled or forgets it ends with its destruction.
///
/// The cost of a request is known only when its turn has ended. Until then an estimate counts: that of the caller, or
/// the average of what the tenant's earlier requests took. It is corrected afterwards, so wrong estimates change
/// no share.
///
/// A tenant that has no requests loses its share, except for what it may save up, tenant_options::burst. The unused
/// time goes to the others: the device is never idle while a request waits, unless its tenant has
/// tenant_options::max_running turns.
///
/// A value type: copies refer to the same object. Permits may outlive it.
///
/// Executor: handlers run on their associated executor, or else on that of the fair_share.
/// Exceptions: an initiating call throws std::bad_alloc; nothing has been started then. create() and stats() throw
/// std::bad_alloc.
/// Lifetimes: a fair_share and its permits may outlive their execution context.
/// Thread safety: const functions may be called from any thread, even on the same copy.
class fair_share {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to nothing; its operations complete with errc::invalid_argument.
    fair_share() noexcept = default;

    /// Errors: errc::invalid_option.
    [[nodiscard]] static result<fair_share> create(executor_type ex, const fair_share_options& options = {})
    {
        BOOST_OUTCOME_TRY(auto state, detail::make_fair_share(std::move(ex), options));
        fair_share made;
        made.state_ = std::move(state);
        return made;
    }

    /// Waits for a turn.
    ///
    /// Completion signature: void(error_code, permit).
    /// Completes when: the turn has begun.
    /// Cancellation: total, partial, terminal; the request leaves the queue. A turn that has begun is not cancelled.
    /// Errors: errc::queue_full, with the tenant and the limit; errc::deadline_exceeded, at once if the tenant's own
    /// waiting requests leave no time; errc::actor_stopped; errc::invalid_argument for an estimate that is negative or
    /// above an hour; operation_aborted.
    template <asio::completion_token_for<void(error_code, permit)> Token = default_token>
    auto async_enter(std::string tenant, const enter_options& how, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, permit)>(detail::initiate_enter{state_}, token,
                                                                     std::move(tenant), how);
    }

    /// As above, with the deadline and when_full of these options: `share.async_enter(tenant, within(20ms))`.
    template <asio::completion_token_for<void(error_code, permit)> Token = default_token>
    auto async_enter(std::string tenant, const exec_options& how, Token&& token = {}) const
    {
        return async_enter(std::move(tenant), from_exec(how), static_cast<Token&&>(token));
    }

    /// As above, without a deadline.
    template <asio::completion_token_for<void(error_code, permit)> Token = default_token>
    auto async_enter(std::string tenant, Token&& token = {}) const
    {
        return async_enter(std::move(tenant), enter_options{}, static_cast<Token&&>(token));
    }

    /// Waits for a turn, starts the work, and ends the turn with it: `co_await share.run(tenant, how, work(x))`. The
    /// work is a coroutine that has not been started. The time of the turn is charged.
    ///
    /// Returns what the work returns, or the error of async_enter; the work is then not started.
    /// Cancellation: of the wait, and of the work as it allows.
    template <class T>
    asio::awaitable<result<T>> run(std::string tenant, const enter_options& how, asio::awaitable<result<T>> work) const
    {
        return in_turn(*this, std::move(tenant), how, std::move(work));
    }

    /// The same for an operation with the default token: `co_await share.run(tenant, how, plan.async_run(...))`.
    template <class Deferred>
    auto run(std::string tenant, const enter_options& how, lazy_operation<Deferred> work) const
    {
        return run(std::move(tenant), how, std::move(work)(asio::use_awaitable));
    }

    /// As above, with the deadline and when_full of these options.
    template <class Work>
    auto run(std::string tenant, const exec_options& how, Work work) const
    {
        return run(std::move(tenant), from_exec(how), std::move(work));
    }

    /// Stops giving turns to further requests, which complete with errc::actor_stopped. With `shutdown::drain` those
    /// that wait get their turns first, with `shutdown::abandon` they complete with errc::actor_stopped.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all turns have ended.
    /// Cancellation: total, partial, terminal; ends the wait only.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(shutdown mode, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_stop_share{state_}, token, mode);
    }

    /// The counters, also of each remembered tenant: O(tenants).
    fair_share_stats stats() const { return state_ ? state_->stats() : fair_share_stats(); }
    executor_type get_executor() const noexcept { return detail::executor_of(state_); }
    explicit operator bool() const noexcept { return state_ != nullptr; }
    friend bool operator==(const fair_share& a, const fair_share& b) noexcept { return a.state_ == b.state_; }

    /// Adds its metrics to a registry, until the registration is destroyed. Tenants without options of their own are
    /// one row together, because their number has no bound over time.
    [[nodiscard]] telemetry::registration report_to(const telemetry::registry& where) const
    {
        return state_ ? detail::report(where, state_) : telemetry::registration();
    }

private:
    static enter_options from_exec(const exec_options& how) noexcept
    {
        return {.deadline = how.deadline, .when_full = how.when_full};
    }

    // Static, so that its frame owns all that it uses.
    template <class T>
    static asio::awaitable<result<T>> in_turn(fair_share share, std::string tenant, enter_options how,
                                              asio::awaitable<result<T>> work)
    {
        auto turn = co_await share.async_enter(std::move(tenant), how);
        if (!turn)
            co_return turn.error();
        auto done = co_await std::move(work);
        turn.value().finish();
        co_return done;
    }

    detail::fair_share_ptr state_;
};

} // namespace coaccel::serve

#endif
