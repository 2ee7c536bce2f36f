#ifndef COACCEL_CORE_STORED_REPLY_HPP
#define COACCEL_CORE_STORED_REPLY_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>

#include <cstddef>

namespace coaccel {

namespace detail {

/// Describes an op that writes its reply to the operand at this offset.
/// Exceptions: std::bad_alloc.
COACCEL_DECL void describe_stored_reply(op_info& info, const op_info& own, std::size_t offset, dtype type);

} // namespace detail

/// Ops whose reply can be stored in device memory.
template <class Op>
concept op_with_storable_reply = op<Op> && element<typename Op::reply> && requires { requires Op::storable_reply; };

/// An op whose reply is written to device memory instead of being returned, so that later ops can use it there; made by
/// `store_reply`.
template <op_with_storable_reply Op>
struct stored_reply {
    using reply = void;                                                            ///< Nothing is returned.
    static constexpr std::string_view name = Op::name;                             ///< The name of the op.
    static constexpr library lib = Op::lib;                                        ///< The library of the op.
    static constexpr bool pure = Op::pure;                                         ///< As the op.
    static constexpr std::size_t operand_count = detail::count_operands<Op>() + 1; ///< Those of the op, and `dst`.

    Op op;                       ///< The op.
    out<typename Op::reply> dst; ///< One element, for the reply.

    /// As the op's own check; `dst` must have one element.
    error_code check() const noexcept
    {
        if (dst.size() != 1)
            return detail::op_error(errc::length_mismatch, name,
                                    {"the reply is one element, but dst has ", dst.size()});
        return op.check();
    }

    /// Describes the fields to the library.
    static void describe(op_info& info)
    {
        static_assert(offsetof(stored_reply, op) == 0, "backends read the op at the address of this struct");
        detail::describe_stored_reply(info, info_of<Op>(), offsetof(stored_reply, dst), dtype_v<typename Op::reply>);
    }
};

/// Makes an op that writes the reply of `o` to one element of device memory.
template <op_with_storable_reply Op>
stored_reply<Op> store_reply(const Op& o, const out<typename Op::reply>& dst) noexcept
{
    return {o, dst};
}

} // namespace coaccel

#endif
