#ifndef COACCEL_DEVICE_DETAIL_SUBMIT_ARGUMENTS_HPP
#define COACCEL_DEVICE_DETAIL_SUBMIT_ARGUMENTS_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/device/detail/exec_requests.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

// Splits the arguments `operands..., function[, token]`.
namespace coaccel::detail {

template <class... Args>
inline constexpr std::size_t operand_count = (std::size_t(is_operand<std::decay_t<Args>>) + ... + 0);

/// Whether async_submit takes the argument: no optional operand, and no list of operands.
template <class A>
inline constexpr bool is_submit_argument = is_operand<A> ? !is_optional<A> : !has_operands<A>;

template <class Function, class Token, class... Operands>
auto start_submit(const core_ptr& core, const exec_options& how, std::tuple<Operands...> operands, Function&& function,
                  Token&& token)
{
    using request_type = submit_request<std::decay_t<Function>, Operands...>;
    return asio::async_initiate<Token, void(error_code)>(initiate_request<request_type>{core}, token,
                                                         static_cast<Function&&>(function), operands, how);
}

template <std::size_t... I, class Tuple>
auto split_submit(std::index_sequence<I...>, const core_ptr& core, const exec_options& how, Tuple&& args)
{
    constexpr std::size_t count = sizeof...(I);
    constexpr std::size_t size = std::tuple_size_v<std::decay_t<Tuple>>;
    static_assert(size == count + 1 || size == count + 2,
                  "async_submit takes operands (in, out, inout), then a function, then perhaps a token");
    auto operands = std::tuple(std::get<I>(args)...);
    auto&& function = std::get<count>(static_cast<Tuple&&>(args));
    using function_type = std::tuple_element_t<count, std::decay_t<Tuple>>;
    if constexpr (size == count + 2) {
        using token_type = std::tuple_element_t<count + 1, std::decay_t<Tuple>>;
        return start_submit(core, how, operands, static_cast<function_type>(function),
                            static_cast<token_type>(std::get<count + 1>(args)));
    } else {
        default_token token{};
        return start_submit(core, how, operands, static_cast<function_type>(function), token);
    }
}

template <class... Args>
auto split_submit(const core_ptr& core, const exec_options& how, Args&&... args)
{
    static_assert((is_submit_argument<std::decay_t<Args>> && ...),
                  "async_submit takes operands (in, out, inout), none of them optional or a list");
    return split_submit(std::make_index_sequence<operand_count<Args...>>{}, core, how,
                        std::forward_as_tuple(static_cast<Args&&>(args)...));
}

} // namespace coaccel::detail

#endif
