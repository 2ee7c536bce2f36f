#ifndef COACCEL_SERVE_DETAIL_VERSION_REQUEST_HPP
#define COACCEL_SERVE_DETAIL_VERSION_REQUEST_HPP

#include <coaccel/core/exec_options.hpp>
#include <coaccel/device/plan.hpp>
#include <coaccel/serve/version_lease.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// The handler of a request to a version: it ends the lease, then calls the handler of the caller.
template <class T, class Handler>
struct version_request_handler {
    serve::version_lease<T> lease;
    Handler handler;

    template <class... Args>
    void operator()(error_code ec, Args&&... args)
    {
        lease.ended(ec);
        std::move(handler)(ec, static_cast<Args&&>(args)...);
    }
};

/// Completes a request for which there is no version.
template <class... Reply>
class refused_request : public async_op_base {
public:
    explicit refused_request(error_code why) noexcept { ec = why; }

    auto take() { return std::tuple<error_code, Reply...>(ec, Reply()...); }

protected:
    ~refused_request() = default;
};

template <class T>
concept has_with = requires(const T& what, const exec_options& how) { what.with(how); };

/// Passes a request to the version that is current when the request is started.
template <class T, class Invoke, class... Reply>
struct initiate_version_request {
    using executor_type = asio::any_io_executor;

    hot_swap_ptr core;

    executor_type get_executor() const noexcept { return executor_of(core); }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, const exec_options& how, Args&&... args) const
    {
        const executor_type ex = get_executor();
        auto picked = pick_version(core);
        if (!picked) {
            // The handler is destroyed, as for all calls after the execution context.
            if (has_lost_its_context(core))
                return;
            using op_type = handler_op<refused_request<Reply...>, std::decay_t<Handler>, executor_type>;
            return op_type::create(static_cast<Handler&&>(handler), ex, picked.error())->post();
        }
        serve::version_lease<T> lease(core, std::move(picked).value());
        // The request may end on another thread within the call that starts it, and with it the lease.
        const auto version = lease.keep();
        // The executor of the version may be another one, which must not become that of the handler.
        const auto handler_ex = asio::get_associated_executor(handler, ex);
        using wrapped = version_request_handler<T, std::decay_t<Handler>>;
        Invoke::start(version, core, how,
                      asio::bind_executor(handler_ex, wrapped{std::move(lease), static_cast<Handler&&>(handler)}),
                      static_cast<Args&&>(args)...);
    }
};

/// `what.async_run(args..., handler)`.
struct invoke_async_run {
    template <class T, class Handler, class... Args>
    static void start(const std::shared_ptr<const version_of<T>>& version, const hot_swap_ptr&, const exec_options& how,
                      Handler&& handler, Args&&... args)
    {
        if constexpr (has_with<T>)
            version->what.with(how).async_run(args..., static_cast<Handler&&>(handler));
        else
            version->what.async_run(args..., static_cast<Handler&&>(handler));
    }
};

/// `what.async_call(request, how, handler)`.
struct invoke_async_call {
    template <class T, class Handler, class Request>
    static void start(const std::shared_ptr<const version_of<T>>& version, const hot_swap_ptr&, const exec_options& how,
                      Handler&& handler, Request&& request)
    {
        version->what.async_call(static_cast<Request&&>(request), how, static_cast<Handler&&>(handler));
    }
};

/// A call of a version that is a function.
struct version_function_call : function_call {
    using function_call::function_call;

    /// The coroutine has begun: from now on the call has an outcome.
    bool begun = false;
};

/// Cancels a call of a function, on its strand.
struct version_function_canceller {
    std::weak_ptr<version_function_call> call;

    void operator()(asio::cancellation_type type) const noexcept
    {
        // Without memory the function runs to its end.
        try {
            if (auto c = call.lock())
                asio::post(c->strand, [c, type] { c->signal.emit(type); });
        } catch (...) {
        }
    }
};

/// The handler of the coroutine that calls a function: completes the request.
template <class Reply>
class version_function_ended {
public:
    using op_type = reply_op<std::tuple<error_code, Reply>>;

    version_function_ended(op_type& op, std::shared_ptr<version_function_call> call, hot_swap_ptr core) noexcept
        : op_(&op), call_(std::move(call)), core_(std::move(core))
    {}
    version_function_ended(version_function_ended&&) noexcept = default;
    version_function_ended& operator=(version_function_ended&&) = delete;

    /// The coroutine was destroyed before it ended.
    ~version_function_ended()
    {
        // Nothing has been started, or the execution context is being destroyed: the request is destroyed, too.
        if (!op_ || !call_->begun || has_lost_its_context(core_))
            return;
        try {
            end(version_function_vanished(core_), Reply());
        } catch (...) {
            // There is no memory, and the handler has been destroyed.
        }
    }

    void operator()(const std::exception_ptr& e, result<Reply> reply)
    {
        if (!e && reply)
            return end({}, std::move(reply).value());
        end(e ? version_threw(core_, e) : version_error(reply.error()), Reply());
    }

private:
    struct discard {
        void operator()(op_type* op) const noexcept { op->destroy(); }
    };

    void end(error_code ec, Reply&& reply)
    {
        op_->set(std::tuple<error_code, Reply>(ec, std::move(reply)));
        op_.release()->post();
    }

    std::unique_ptr<op_type, discard> op_;
    std::shared_ptr<version_function_call> call_;
    hot_swap_ptr core_;
};

/// Calls a function as a coroutine on a strand for this call, whatever executor the handler has: that of use_future,
/// for example, would run it on the thread of the caller.
template <class Reply>
struct invoke_function {
    template <class T, class Handler, class Request>
    static void start(const std::shared_ptr<const version_of<T>>& version, const hot_swap_ptr& core,
                      const exec_options&, Handler&& handler, Request&& request)
    {
        using ended = version_function_ended<Reply>;
        using op_type = handler_op<typename ended::op_type, std::decay_t<Handler>, asio::any_io_executor>;
        const auto ex = executor_of(core);
        auto running = std::make_shared<version_function_call>(ex);
        auto coroutine = call(version, running, std::decay_t<Request>(static_cast<Request&&>(request)));
        auto* op = op_type::create(static_cast<Handler&&>(handler), ex);
        op->on_cancel(version_function_canceller{running});
        const auto strand = running->strand;
        const auto slot = running->signal.slot();
        asio::co_spawn(strand, std::move(coroutine),
                       asio::bind_cancellation_slot(slot, ended(*op, std::move(running), core)));
    }

    template <class T, class Request>
    static asio::awaitable<result<Reply>> call(std::shared_ptr<const version_of<T>> version,
                                               std::shared_ptr<version_function_call> running, Request request)
    {
        running->begun = true;
        // Not within the call that starts the request, where co_spawn may begin.
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        auto reply = co_await version->what(std::move(request));
        co_return reply;
    }
};

/// Any handler.
struct reply_archetype {
    template <class... Args>
    void operator()(Args&&...) const
    {}
};

/// A version that answers requests by async_call, like a function_batcher.
template <class T>
concept has_async_call = requires {
    typename T::request_type;
    typename T::reply_type;
} && requires(const T& what, typename T::request_type r, const exec_options& how) {
    what.async_call(std::move(r), how, reply_archetype());
};

/// What a function takes, as a value. Only if it is known, which it is not for templates and overloaded functions.
template <class F>
struct function_argument {};
template <class R, class A>
struct function_argument<R (*)(A)> : std::remove_cvref<A> {};
template <class R, class A>
struct function_argument<R (*)(A) noexcept> : std::remove_cvref<A> {};
template <class R, class C, class A>
struct function_argument<R (C::*)(A) const> : std::remove_cvref<A> {};
template <class R, class C, class A>
struct function_argument<R (C::*)(A) const noexcept> : std::remove_cvref<A> {};
template <class F>
    requires requires { typename function_argument<decltype(&F::operator())>::type; }
struct function_argument<F> : function_argument<decltype(&F::operator())> {};

/// What is kept of a request until the function is called. The conversion to the function's own type happens in the
/// initiating call: the request may be a view of something that exists only so long.
template <class T, class Request>
struct kept_request : std::type_identity<Request> {};
template <class T, class Request>
    requires std::convertible_to<Request, typename function_argument<T>::type>
struct kept_request<T, Request> : function_argument<T> {};

template <class Returned>
struct reply_of_awaitable {};
template <class Reply, class Executor>
struct reply_of_awaitable<asio::awaitable<result<Reply>, Executor>> {
    using type = Reply;
};

/// What a call of the function gives.
template <class T, class Request>
using function_reply =
    typename reply_of_awaitable<std::invoke_result_t<const T&, typename kept_request<T, Request>::type>>::type;

/// The type of reply that a call of a version with this request gives, and how it is called.
template <class T, class Request>
struct version_call {};

template <class T, class Request>
    requires has_async_call<T> && std::convertible_to<Request, typename T::request_type>
struct version_call<T, Request> {
    using request = typename T::request_type;
    using reply = typename T::reply_type;
    using invoke = invoke_async_call;
};

template <class T, class Request>
    requires(!has_async_call<T>) && requires { typename function_reply<T, Request>; }
struct version_call<T, Request> {
    using request = typename kept_request<T, Request>::type;
    using reply = function_reply<T, Request>;
    using invoke = invoke_function<reply>;
};

template <class T>
inline constexpr bool is_run_argument = is_run_range<T> || is_run_value<T>;

/// The argument for the version, whose operation begins while temporaries of the caller's expression exist.
inline const run_range& for_version(const temporary_run_range& r) noexcept
{
    return r;
}

template <class T>
const T& for_version(const T& argument) noexcept
{
    return argument;
}

} // namespace coaccel::detail

namespace boost::asio {

template <template <class, class> class Associator, class T, class Handler, class DefaultCandidate>
struct associator<Associator, coaccel::detail::version_request_handler<T, Handler>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate> {
    using inner = Associator<Handler, DefaultCandidate>;
    using wrapper = coaccel::detail::version_request_handler<T, Handler>;

    static typename inner::type get(const wrapper& h) noexcept { return inner::get(h.handler); }

    static decltype(auto) get(const wrapper& h, const DefaultCandidate& c) noexcept { return inner::get(h.handler, c); }
};

} // namespace boost::asio

#endif
