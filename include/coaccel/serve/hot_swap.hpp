#ifndef COACCEL_SERVE_HOT_SWAP_HPP
#define COACCEL_SERVE_HOT_SWAP_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/core/exec_options.hpp>
#include <coaccel/device/shutdown.hpp>
#include <coaccel/serve/detail/version_request.hpp>
#include <coaccel/serve/hot_swap_options.hpp>
#include <coaccel/serve/version_lease.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel::serve {

/// Where a version comes from.
template <class T>
struct version_source {
    /// In messages, statistics and metrics. Names need not differ; the number of a version tells them apart.
    std::string name;
    /// Makes the version, as a coroutine on a strand of the executor, which belongs to this call. Give what is loaded
    /// the executor of the program, and not this_coro::executor.
    std::function<asio::awaitable<result<T>>()> load;
    /// Prepares it for its first request, for example with a request of its own: what is slow the first time happens
    /// before the switch. An error means that the version is not fit to serve. Empty: none.
    std::function<asio::awaitable<result<void>>(const T&)> warm_up{};
};

template <class T>
class hot_swap_with;

/// Replaces what answers requests while requests arrive: a model by its next version, for example.
///
///     BOOST_OUTCOME_CO_TRY(auto model, hot_swap<dynamic_batcher>::create(ex, options));
///     version_source<dynamic_batcher> source{"v2", load_v2, try_one_row};
///     auto number = co_await model.async_load(std::move(source));          // v1 answers meanwhile
///     auto done = co_await model.async_run(from(request), to(answer));     // in many coroutines
///
/// T is the type of a version: a dynamic_batcher, a function_batcher, a replica_pool, a plan, a function that returns
/// `asio::awaitable<result<Reply>>`, or a structure with all that a version consists of. pick() is for all types. The
/// others need these const functions of T, which are called by several threads at a time:
/// - async_run: `async_run(arguments..., token)`; if T has `with(exec_options)`, the options of a request go there.
/// - async_call: the types request_type and reply_type, and `async_call(request, exec_options, token)`; without these a
///   call operator that takes a request and returns `asio::awaitable<result<Reply>>`.
/// - The shutdown of a version: `async_shutdown(shutdown, token)`, whose handler takes an error_code. It is called a
///   second time, with shutdown::abandon, if the first shutdown has not ended after drain_limit, or if the hot_swap is
///   abandoned meanwhile; the version counts as shut down when the first of them ends.
///
/// A request takes the current version once, when it is started, and is answered by it alone, whatever is switched
/// meanwhile. It is not repeated on another version. A switch is the exchange of one number under a lock.
///
/// A version that was replaced stays loaded as the previous one until the new one is confirmed, by confirm() or after
/// confirm_after; until then roll_back() returns to it, and so does the rule in rollback_options. Then it gets no
/// further requests, and is shut down after its last one, with async_shutdown if T has this function; otherwise it is
/// only destroyed. A version that was rolled back is shut down likewise, and never comes back unless it is loaded
/// again.
///
/// A value type: copies refer to the same hot_swap. After the last copy is destroyed, its requests end, and all
/// versions are shut down. Leases may outlive it. While a previous version is kept, a timer keeps the executor running.
///
/// Executor: handlers run on their associated executor, or else on that of the hot_swap, whatever executor T has.
/// Exceptions: an initiating call throws std::bad_alloc; nothing has been started then. There is no recovery if the
/// hot_swap itself runs out of memory while it works.
/// Lifetimes: a hot_swap may outlive its execution context; calls after it destroy their handlers. on_event and
/// is_failure of the options, and what they refer to, are used until async_shutdown has completed with success, and the
/// last request has ended; without async_shutdown, until the executor runs out of work after the last copy and lease.
/// Thread safety: const functions may be called from any thread, even on the same copy.
template <class T>
    requires std::move_constructible<T>
class hot_swap {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to no hot_swap; its operations complete with errc::invalid_argument.
    hot_swap() noexcept = default;

    /// Creates a hot_swap without a version. Its requests complete with errc::actor_stopped until one is loaded.
    ///
    /// Errors: errc::invalid_option.
    /// Exceptions: std::bad_alloc.
    [[nodiscard]] static result<hot_swap> create(executor_type ex, const hot_swap_options& options = {})
    {
        BOOST_OUTCOME_TRY(auto core, detail::make_hot_swap(std::move(ex), options));
        hot_swap made;
        made.handle_ = std::make_shared<detail::hot_swap_handle>(std::move(core));
        return made;
    }

    /// Loads a version beside the one that runs, warms it up, and switches to it. Completes with the number of the
    /// version. One load is in progress at a time; others wait in the order of their calls, at most max_waiting_loads.
    ///
    /// An error leaves the version that runs untouched; what has been loaded is shut down. The message names the
    /// version and the step. A function that ignores its cancellation is not waited for; a version that it returns
    /// nevertheless is shut down with shutdown::drain, for which async_shutdown of the hot_swap does not wait.
    ///
    /// With g++ 12, move a named local variable in: temporaries of aggregate type break inside co_await expressions.
    ///
    /// Completion signature: void(error_code, std::uint64_t).
    /// Completes when: the version answers requests. The one before is drained later.
    /// Cancellation: total, partial, terminal, until the switch; the function that runs is cancelled.
    /// Errors: those of the functions, as errc::start_failed if they come from another library; errc::user_exception if
    /// one threw; errc::no_reply if its coroutine was destroyed, or returned an error without a code;
    /// errc::deadline_exceeded after load_limit or warm_up_limit; errc::queue_full; errc::actor_stopped if the hot_swap
    /// was stopped; errc::invalid_argument without a load function, and for an empty version, such as a
    /// default-constructed batcher; operation_aborted.
    template <asio::completion_token_for<void(error_code, std::uint64_t)> Token = default_token>
    auto async_load(version_source<T> source, Token&& token = {}) const
    {
        const error_code refused = detail::check_version_source(static_cast<bool>(source.load));
        std::shared_ptr<detail::version_maker> maker =
            std::make_shared<detail::version_maker_of<T>>(std::move(source.load), std::move(source.warm_up));
        return asio::async_initiate<Token, void(error_code, std::uint64_t)>(
            detail::initiate_swap_op<detail::load_version_op>{core()}, token, std::move(source.name), std::move(maker),
            refused);
    }

    /// Takes the current version for one request. Call version_lease::ended with the outcome of the request, by which
    /// the version is judged.
    ///
    /// Errors: errc::actor_stopped if no version is loaded or the hot_swap was stopped; errc::invalid_argument for an
    /// empty one.
    [[nodiscard]] result<version_lease<T>> pick() const
    {
        auto c = core();
        BOOST_OUTCOME_TRY(auto picked, detail::pick_version(c));
        return version_lease<T>(std::move(c), std::move(picked));
    }

    /// T::async_run of the current version: `async_run(from(x), to(y))`, perhaps with a token.
    ///
    /// Completion signature: void(error_code).
    /// Cancellation, errors, lifetimes: those of T::async_run; also errc::actor_stopped if no version is loaded.
    template <class... Args>
    auto async_run(Args&&... args) const
    {
        return run_with({}, static_cast<Args&&>(args)...);
    }

    /// The same hot_swap with these options for its requests, which T::with takes.
    hot_swap_with<T> with(const exec_options& options) const
        requires detail::has_with<T>
    {
        return {*this, options};
    }

    /// Calls the current version with a request: T::async_call, or T itself if it is a function that returns
    /// `asio::awaitable<result<Reply>>`. The function runs on a strand of the hot_swap's executor, which belongs to
    /// this call, and never within async_call; the version exists until it ends. The request is converted to what the
    /// function takes within async_call, unless the function is a template or overloaded.
    ///
    /// With g++ 12, move a named local variable in: temporaries of aggregate type break inside co_await expressions.
    ///
    /// Completion signature: void(error_code, Reply).
    /// Cancellation: that of T; that of a coroutine on its strand for a function.
    /// Errors: those of T; errc::user_exception if the function threw, and operation_aborted if it threw that;
    /// errc::no_reply if its coroutine was destroyed, or returned an error without a code; errc::actor_stopped if no
    /// version is loaded.
    template <class Request,
              asio::completion_token_for<void(error_code, typename detail::version_call<T, Request>::reply)> Token =
                  default_token>
    auto async_call(Request r, Token&& token = {}) const
    {
        return call_with(exec_options{}, std::move(r), static_cast<Token&&>(token));
    }

    /// As above, with a deadline, a priority or when_full, for a T that has async_call with options.
    template <class Request,
              asio::completion_token_for<void(error_code, typename detail::version_call<T, Request>::reply)> Token =
                  default_token>
        requires std::same_as<typename detail::version_call<T, Request>::invoke, detail::invoke_async_call>
    auto async_call(Request r, const exec_options& how, Token&& token = {}) const
    {
        return call_with(how, std::move(r), static_cast<Token&&>(token));
    }

    /// Returns to the previous version, which answers all requests that are started from now on. The current one is
    /// drained. `from`: only if this is the number of the current version; 0: whichever it is.
    ///
    /// Errors: errc::invalid_argument if there is no previous version, or `from` is not the current one;
    /// errc::actor_stopped.
    [[nodiscard]] result<void> roll_back(std::uint64_t from = 0) const
    {
        return done(detail::roll_back_version(core(), from));
    }

    /// Confirms the current version: the previous one is drained, and there is no way back. Does nothing if there is no
    /// previous one. `which`: only if this is the number of the current version; 0: whichever it is.
    ///
    /// Errors: errc::invalid_argument if there is no version, or `which` is not the current one; errc::actor_stopped.
    [[nodiscard]] result<void> confirm(std::uint64_t which = 0) const
    {
        return done(detail::confirm_version(core(), which));
    }

    /// Stops the hot_swap. Later requests and loads, and loads in progress, complete with errc::actor_stopped.
    /// `shutdown::drain` lets requests end first, for at most drain_limit; `shutdown::abandon` shuts the versions down
    /// at once, in that mode.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all versions have been shut down, or were given up, see hot_swap_options::drain_limit.
    /// Cancellation: total, partial, terminal; ends the wait.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_shutdown(shutdown mode, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_swap_op<detail::stop_swap_op>{core()},
                                                             token, mode);
    }

    executor_type get_executor() const noexcept { return detail::executor_of(core()); }
    /// The versions and the counters. Thread safety: any thread. Exceptions: std::bad_alloc.
    hot_swap_stats stats() const { return detail::stats_of(core()); }
    /// Adds its metrics to a registry, until the registration is destroyed.
    [[nodiscard]] telemetry::registration report_to(const telemetry::registry& where) const
    {
        return handle_ ? detail::report(where, core()) : telemetry::registration();
    }
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    friend bool operator==(const hot_swap& a, const hot_swap& b) noexcept { return a.handle_ == b.handle_; }

private:
    friend class hot_swap_with<T>;

    detail::hot_swap_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }

    static result<void> done(const error_code& ec) { return ec ? result<void>(ec) : outcome::success(); }

    template <class... Args>
    auto run_with(const exec_options& how, Args&&... args) const
    {
        constexpr std::size_t given = (std::size_t(detail::is_run_argument<Args>) + ... + 0);
        static_assert(sizeof...(Args) <= given + 1,
                      "async_run takes from(range), value(number) and to(range), then perhaps a token");
        if constexpr (sizeof...(Args) == given) {
            return start_run(how, default_token{}, std::forward_as_tuple(args...),
                             std::make_index_sequence<sizeof...(Args)>());
        } else {
            auto all = std::forward_as_tuple(static_cast<Args&&>(args)...);
            using token_type = std::tuple_element_t<given, decltype(all)>;
            static_assert(!detail::is_run_argument<token_type>, "the token is the last argument");
            using started = decltype(start_run(how, static_cast<token_type&&>(std::get<given>(all)), all,
                                               std::make_index_sequence<given>()));
            static_assert(detail::outlive<started, Args...>, COACCEL_TEMPORARY_RANGE);
            return start_run(how, static_cast<token_type&&>(std::get<given>(all)), all,
                             std::make_index_sequence<given>());
        }
    }

    template <class Token, class Tuple, std::size_t... I>
    auto start_run(const exec_options& how, Token&& token, const Tuple& args, std::index_sequence<I...>) const
    {
        using start = detail::initiate_version_request<T, detail::invoke_async_run>;
        return asio::async_initiate<Token, void(error_code)>(start{core()}, token, how,
                                                             detail::for_version(std::get<I>(args))...);
    }

    template <class Request, class Token>
    auto call_with(const exec_options& how, Request r, Token&& token) const
    {
        using call = detail::version_call<T, Request>;
        using start = detail::initiate_version_request<T, typename call::invoke, typename call::reply>;
        return asio::async_initiate<Token, void(error_code, typename call::reply)>(
            start{core()}, token, how, static_cast<typename call::request>(std::move(r)));
    }

    std::shared_ptr<detail::hot_swap_handle> handle_;
};

/// A hot_swap together with options for its requests: `model.with(within(5ms))`.
template <class T>
class hot_swap_with {
public:
    /// Called by hot_swap::with.
    hot_swap_with(hot_swap<T> what, const exec_options& options) noexcept : swap_(std::move(what)), options_(options) {}

    /// As hot_swap::async_run.
    template <class... Args>
    auto async_run(Args&&... args) const
    {
        return swap_.run_with(options_, static_cast<Args&&>(args)...);
    }

private:
    hot_swap<T> swap_;
    exec_options options_;
};

} // namespace coaccel::serve

#endif
