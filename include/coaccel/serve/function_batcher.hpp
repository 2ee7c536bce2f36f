#ifndef COACCEL_SERVE_FUNCTION_BATCHER_HPP
#define COACCEL_SERVE_FUNCTION_BATCHER_HPP

#include <coaccel/actor/mailbox.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/device/shutdown.hpp>
#include <coaccel/serve/detail/function_runner.hpp>

#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel::serve {

/// A function that answers a batch: it returns as many replies as there are requests, in their order.
template <class F, class Request, class Reply>
concept batch_function =
    std::copy_constructible<F> &&
    std::is_invocable_r_v<asio::awaitable<result<std::vector<Reply>>>, F&, std::span<const Request>>;

/// Collects requests of many callers into batches, and calls a function with each batch.
///
///     asio::awaitable<result<std::vector<float>>> score(std::span<const item> items);
///     BOOST_OUTCOME_CO_TRY(auto scores, function_batcher<item, float>::create(ex, options, score));
///     auto one = co_await scores.async_call(std::move(item));              // in many coroutines
///
/// The function is called on a strand of the executor, for up to max_in_flight batches at the same time; the requests
/// exist until its coroutine has ended. If it returns
/// errc::context_lost for a batch of several requests, it is called again with each request alone, so that a request
/// that makes a device fail gets the error and the others their replies. Any other error is the answer to all requests
/// of the batch. batcher_options::restart says what happens when it throws, takes too long, or returns the wrong number
/// of replies.
///
/// A value type: copies refer to the same batcher. After the last copy is destroyed, it finishes the requests that it
/// has accepted, and stops.
///
/// Executor, cancellation, exceptions, lifetimes, thread safety: as for dynamic_batcher.
template <class Request, class Reply>
    requires message<Request> && message<Reply> && std::default_initializable<Reply>
class function_batcher {
public:
    using executor_type = asio::any_io_executor;
    /// Tells shapes apart: only requests with the same key share a batch. Called by the threads of the callers,
    /// several at a time.
    using key_function = std::function<std::uint64_t(const Request&)>;

    /// Refers to no batcher; its operations complete with errc::invalid_argument.
    function_batcher() noexcept = default;

    /// Creates a batcher. Without `key` all requests may share a batch.
    ///
    /// Errors: errc::invalid_option.
    /// Exceptions: std::bad_alloc, and those of copying the function.
    template <batch_function<Request, Reply> F>
    [[nodiscard]] static result<function_batcher> create(executor_type ex, batcher_options options, F f,
                                                         key_function key = {})
    {
        if (options.max_rows == 0)
            options.max_rows = 64;
        if (auto ec = options.check())
            return ec;
        using runner_type = detail::function_runner<Request, Reply>;
        auto runner = std::make_unique<runner_type>(std::move(f), options);
        runner_type& its_runner = *runner;
        auto core = detail::make_batcher(std::move(ex), options, {}, std::move(runner));
        its_runner.attach(core);
        function_batcher made;
        made.shared_ = std::make_shared<state>(std::move(core), std::move(key));
        return made;
    }

    /// Answers one request as a part of a batch.
    ///
    /// With g++ 12, move a named local variable in: temporaries of aggregate type break inside co_await expressions.
    ///
    /// Completion signature: void(error_code, Reply).
    /// Errors: those of the function; errc::user_exception if it threw; errc::no_reply if it returned the wrong number
    /// of replies; errc::queue_full; errc::deadline_exceeded, at once if the deadline cannot be met;
    /// errc::actor_stopped if the batcher was stopped or has failed.
    /// Exceptions: also those of the key function.
    template <asio::completion_token_for<void(error_code, Reply)> Token = default_token>
    auto async_call(Request r, Token&& token = {}) const
    {
        return async_call(std::move(r), exec_options{}, static_cast<Token&&>(token));
    }

    /// As above, with a deadline, a priority or when_full.
    template <asio::completion_token_for<void(error_code, Reply)> Token = default_token>
    auto async_call(Request r, const exec_options& how, Token&& token = {}) const
    {
        const std::uint64_t shape = shared_ && shared_->key ? shared_->key(r) : 0;
        return asio::async_initiate<Token, void(error_code, Reply)>(
            detail::initiate_batched<detail::call_request<Request, Reply>>{core()}, token, shape, std::move(r), how);
    }

    /// As dynamic_batcher::async_shutdown.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(shutdown mode, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(
            detail::initiate_batched<detail::control_request>{core()}, token,
            mode == shutdown::drain ? detail::batch_control::verb::drain : detail::batch_control::verb::abandon);
    }

    /// Lets a batcher that has failed go on, with a new restart budget. Does nothing if it has not failed.
    ///
    /// Completion signature: void(error_code).
    /// Errors: errc::actor_stopped.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_revive(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_batched<detail::control_request>{core()},
                                                             token, detail::batch_control::verb::revive);
    }

    executor_type get_executor() const noexcept { return detail::executor_of(core()); }
    /// The counters. Thread safety: any thread. Exceptions: std::bad_alloc.
    batcher_stats stats() const { return shared_ ? shared_->handle.stats() : batcher_stats(); }
    explicit operator bool() const noexcept { return shared_ != nullptr; }

    /// Adds its metrics to a registry, until the registration is destroyed. The batcher lives at least as long.
    [[nodiscard]] telemetry::registration report_to(const telemetry::registry& where) const
    {
        return shared_ ? detail::report(where, core()) : telemetry::registration();
    }

private:
    struct state {
        state(detail::batcher_ptr core, key_function k) : handle(std::move(core)), key(std::move(k)) {}

        detail::batcher_handle handle;
        const key_function key;
    };

    detail::batcher_ptr core() const noexcept { return shared_ ? shared_->handle.core : nullptr; }

    std::shared_ptr<state> shared_;
};

} // namespace coaccel::serve

#endif
