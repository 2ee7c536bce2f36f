#ifndef COACCEL_DEVICE_SEQ_HPP
#define COACCEL_DEVICE_SEQ_HPP

#include <coaccel/core/op.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel {

/// Several ops that run one after another on one lane and complete once.
///
/// They are checked together: when one is refused, none is started.
template <op... Ops>
struct op_seq {
    static_assert(sizeof...(Ops) > 0, "a seq has at least one op");

    std::tuple<Ops...> ops; ///< The ops, in execution order.
};

namespace detail {

template <op Op>
constexpr std::tuple<Op> ops_of(const Op& o)
{
    return {o};
}

template <class... Ops>
constexpr const std::tuple<Ops...>& ops_of(const op_seq<Ops...>& s)
{
    return s.ops;
}

template <class... Ops>
constexpr op_seq<Ops...> as_seq(const std::tuple<Ops...>& ops)
{
    return {ops};
}

} // namespace detail

/// Makes a sequence of ops for async_exec, in execution order. The parts are ops and other sequences.
///
/// Exceptions: none.
template <class... Parts>
    requires requires(const Parts&... parts) { (detail::ops_of(parts), ...); }
constexpr auto seq(const Parts&... parts)
{
    return detail::as_seq(std::tuple_cat(detail::ops_of(parts)...));
}

namespace detail {

template <class Reply>
using reply_part = std::conditional_t<std::is_void_v<Reply>, std::tuple<>,
                                      std::tuple<std::conditional_t<std::is_void_v<Reply>, int, Reply>>>;

/// The replies of a seq: those of its ops that have one, in order.
template <class... Ops>
using seq_reply = decltype(std::tuple_cat(std::declval<reply_part<typename Ops::reply>>()...));

template <class Op>
struct exec_signature {
    using type = void(error_code, typename Op::reply);
};

template <class Op>
    requires std::is_void_v<typename Op::reply>
struct exec_signature<Op> {
    using type = void(error_code);
};

template <class... Ops>
struct seq_signature {
    using reply = seq_reply<Ops...>;
    using type = std::conditional_t<std::tuple_size_v<reply> == 0, void(error_code), void(error_code, reply)>;
};

} // namespace detail

/// The completion signature of an op: `void(error_code)`, or `void(error_code, Reply)`.
template <op Op>
using exec_signature = typename detail::exec_signature<Op>::type;

/// The completion signature of a seq: `void(error_code)`, or the replies of its ops in a tuple.
template <op... Ops>
using seq_signature = typename detail::seq_signature<Ops...>::type;

} // namespace coaccel

#endif
