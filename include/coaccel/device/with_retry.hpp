#ifndef COACCEL_DEVICE_WITH_RETRY_HPP
#define COACCEL_DEVICE_WITH_RETRY_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/device/retry_policy.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace coaccel {

namespace detail {

template <class T>
inline constexpr bool is_awaitable_result = false;
template <class T, class Executor>
inline constexpr bool is_awaitable_result<asio::awaitable<result<T>, Executor>> = true;

template <class Awaitable, class Function, class... Args>
Awaitable retry_loop(retry_policy policy, Function function, Args... args)
{
    if (const error_code ec = policy.check())
        co_return ec;
    retry_counter attempts(policy);
    for (;;) {
        auto attempt = std::invoke(function, args...);
        auto done = co_await std::move(attempt);
        if (done)
            co_return std::move(done);
        // After a cancellation the function is not called again, even if the cancellation did not interrupt it.
        const auto cancellation = co_await asio::this_coro::cancellation_state;
        if (cancellation.cancelled() != asio::cancellation_type::none)
            co_return std::move(done);
        const auto delay = attempts.failed(done.error(), retry_policy::clock::now());
        if (!delay)
            co_return std::move(done);
        if (*delay > retry_policy::clock::duration::zero()) {
            asio::steady_timer timer(co_await asio::this_coro::executor, *delay);
            const auto [ec] = co_await timer.async_wait(asio::as_tuple(asio::deferred));
            if (ec)
                co_return ec;
        }
    }
}

} // namespace detail

/// A function whose call with these arguments returns asio::awaitable<result<T>>.
template <class Function, class... Args>
concept retryable_function =
    std::invocable<std::decay_t<Function>&, std::decay_t<Args>&...> &&
    detail::is_awaitable_result<std::invoke_result_t<std::decay_t<Function>&, std::decay_t<Args>&...>>;

/// Calls `function(args...)`, and calls it again when it ends with an error that the policy treats as retryable, by
/// default a lost context. The function does the whole job, uploads included, or takes its refs from a `resident`.
///
/// The function and its arguments are copied; pass large ones by std::ref or std::cref. With g++ 12 a lambda with
/// captures must be a named variable: temporary lambdas with captures break inside co_await expressions. A function
/// with arguments needs no captures: `co_await with_retry({}, job, gpu, std::cref(numbers))`.
///
/// Returns an awaitable of the result of the last attempt, or of errc::invalid_option for an invalid policy.
/// Cancellation: that of the function; between attempts total, partial and terminal, with operation_aborted.
/// Exceptions: the call throws std::bad_alloc and what copying the function and its arguments throws; the function has
/// not been called then. The awaitable throws what the function throws, without another attempt, and std::bad_alloc if
/// there is no memory for the delay between attempts.
/// Lifetimes: objects passed by std::ref must live until the awaitable completes.
template <class Function, class... Args>
    requires retryable_function<Function, Args...>
auto with_retry(const retry_policy& policy, Function&& function, Args&&... args)
{
    using awaitable = std::invoke_result_t<std::decay_t<Function>&, std::decay_t<Args>&...>;
    return detail::retry_loop<awaitable, std::decay_t<Function>, std::decay_t<Args>...>(
        policy, std::forward<Function>(function), std::forward<Args>(args)...);
}

} // namespace coaccel

#endif
