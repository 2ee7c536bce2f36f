#ifndef COACCEL_SERVE_FUNCTION_BATCHER_HPP
#define COACCEL_SERVE_FUNCTION_BATCHER_HPP

#include <coaccel/actor/mailbox.hpp>
#include <coaccel/serve/batcher_calls.hpp>
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
class function_batcher : public batcher_calls {
public:
    using request_type = Request; ///< What a caller passes.
    using reply_type = Reply;     ///< What a caller gets.
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
        return function_batcher(std::make_shared<keyed_handle>(std::move(core), std::move(key)));
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
        const std::uint64_t shape = shape_of(r);
        return asio::async_initiate<Token, void(error_code, Reply)>(
            detail::initiate_batched<detail::call_request<Request, Reply>>{core()}, token, shape, std::move(r), how);
    }

private:
    /// With what all copies share besides the batcher.
    struct keyed_handle final : detail::batcher_handle {
        keyed_handle(detail::batcher_ptr core, key_function k) : batcher_handle(std::move(core)), key(std::move(k)) {}

        const key_function key;
    };

    explicit function_batcher(std::shared_ptr<keyed_handle> handle) noexcept : batcher_calls(std::move(handle)) {}

    std::uint64_t shape_of(const Request& r) const
    {
        const auto* const shared = static_cast<const keyed_handle*>(handle().get());
        return shared && shared->key ? shared->key(r) : 0;
    }
};

} // namespace coaccel::serve

#endif
