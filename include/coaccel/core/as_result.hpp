#ifndef COACCEL_CORE_AS_RESULT_HPP
#define COACCEL_CORE_AS_RESULT_HPP

#include <coaccel/core/result.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel {

/// Completion token adapter: turns a completion `(error_code, T)` into one `result<T>`.
///
/// `co_await gpu.async_exec(op, as_result(asio::deferred))` yields a result instead of throwing.
template <class Token>
struct as_result_t {
    Token token; ///< The adapted token.
};

/// Adapts a completion token: `as_result(asio::use_future)` yields a future of a result.
///
/// Exceptions: those of copying or moving the token.
template <class Token>
[[nodiscard]] constexpr as_result_t<std::decay_t<Token>> as_result(Token&& token)
{
    return {static_cast<Token&&>(token)};
}

/// The default completion token of coaccel's initiating functions.
using default_token = as_result_t<asio::deferred_t>;

namespace detail {

template <class... Args>
struct result_of_args {
    using type = result<std::tuple<std::decay_t<Args>...>>;
};

template <class T>
struct result_of_args<T> {
    using type = result<std::decay_t<T>>;
};

template <>
struct result_of_args<> {
    using type = result<void>;
};

// The result type is taken from the completion signature; the arguments of the call need only convert to it.
template <class Handler, class Result>
struct as_result_handler {
    Handler handler;

    template <class... Args>
    void operator()(error_code ec, Args&&... args)
    {
        using value_type = typename Result::value_type;
        std::move(handler)(ec ? Result(ec) : Result(outcome::in_place_type<value_type>, static_cast<Args&&>(args)...));
    }
};

// A functor rather than a lambda: g++ 12 destroys captures twice inside co_await expressions.
template <class Initiation, class Result>
struct as_result_initiation {
    Initiation initiation;

    template <class Handler, class... InitArgs>
    void operator()(Handler&& handler, InitArgs&&... args)
    {
        using wrapped = as_result_handler<std::decay_t<Handler>, Result>;
        std::move(initiation)(wrapped{static_cast<Handler&&>(handler)}, static_cast<InitArgs&&>(args)...);
    }
};

template <class Initiation, class Result>
    requires requires { typename Initiation::executor_type; }
struct as_result_initiation<Initiation, Result> {
    using executor_type = typename Initiation::executor_type;

    Initiation initiation;

    executor_type get_executor() const noexcept { return initiation.get_executor(); }

    template <class Handler, class... InitArgs>
    void operator()(Handler&& handler, InitArgs&&... args)
    {
        using wrapped = as_result_handler<std::decay_t<Handler>, Result>;
        std::move(initiation)(wrapped{static_cast<Handler&&>(handler)}, static_cast<InitArgs&&>(args)...);
    }
};

} // namespace detail

/// The operation that an initiating function returns for as_result(asio::deferred), the default token. It starts when
/// it is awaited or called with another token. Each call of a copy starts a new operation.
template <class Deferred>
class [[nodiscard("this operation has not been started: co_await it, or pass a completion token such as "
                  "asio::detached")]] lazy_operation : public Deferred {
public:
    /// Constructed by the initiating function.
    explicit lazy_operation(Deferred&& operation) : Deferred(std::move(operation)) {}
};

} // namespace coaccel

namespace boost::asio {

template <class Deferred>
struct is_deferred<coaccel::lazy_operation<Deferred>> : std::true_type {};

template <class Token, class R, class... Args>
struct async_result<coaccel::as_result_t<Token>, R(boost::system::error_code, Args...)> {
    using result_type = typename coaccel::detail::result_of_args<Args...>::type;
    using signature = R(result_type);
    // Unused, but bind_allocator and bind_cancellation_slot of Boost 1.81 do not compile around a token without it.
    using return_type = void;

    template <class Initiation, class RawToken, class... InitArgs>
    static auto initiate(Initiation&& initiation, RawToken&& token, InitArgs&&... args)
    {
        using wrapped = coaccel::detail::as_result_initiation<std::decay_t<Initiation>, result_type>;
        // async_initiate moves from the token, but the caller may reuse its token for the next operation.
        Token inner(static_cast<RawToken&&>(token).token);
        const auto start = [&]() -> decltype(auto) {
            return async_initiate<Token, signature>(wrapped{static_cast<Initiation&&>(initiation)}, inner,
                                                    static_cast<InitArgs&&>(args)...);
        };
        if constexpr (std::is_same_v<Token, deferred_t>)
            return coaccel::lazy_operation(start());
        else
            return start();
    }
};

template <template <class, class> class Associator, class Handler, class Result, class DefaultCandidate>
struct associator<Associator, coaccel::detail::as_result_handler<Handler, Result>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate> {
    using inner = Associator<Handler, DefaultCandidate>;
    using wrapper = coaccel::detail::as_result_handler<Handler, Result>;

    static typename inner::type get(const wrapper& h) noexcept { return inner::get(h.handler); }

    static decltype(auto) get(const wrapper& h, const DefaultCandidate& c) noexcept { return inner::get(h.handler, c); }
};

} // namespace boost::asio

#endif
