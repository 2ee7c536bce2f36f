#ifndef COACCEL_OPS_DETAIL_PACKED_PARAMETERS_HPP
#define COACCEL_OPS_DETAIL_PACKED_PARAMETERS_HPP

#include <coaccel/core/plan_parameter.hpp>

#include <array>
#include <cstddef>

// Packed ops whose arguments contain parameters of a plan.
namespace coaccel::detail {

/// The argument of the op itself: zero for a parameter.
template <class A>
auto plain_argument(const A& a) noexcept
{
    if constexpr (is_plan_parameter<A>)
        return typename A::value_type{};
    else
        return a;
}

/// The slot of a parameter.
template <class A>
any_ref parameter_slot(const A& a) noexcept
{
    if constexpr (is_plan_parameter<A>)
        return a.raw();
    else
        return {};
}

/// `op`: made with plain_argument of each argument.
template <class Op, class... Args>
auto add_parameters(const Op& op, const Args&... args) noexcept
{
    constexpr std::size_t count = (std::size_t(is_plan_parameter<Args>) + ...);
    constexpr std::array<bool, sizeof...(Args)> is_parameter{is_plan_parameter<Args>...};
    const std::array<any_ref, sizeof...(Args)> slots{parameter_slot(args)...};
    op_with_parameters<Op, count> made{op, {}};
    std::size_t n = 0;
    for (std::size_t i = 0; i < sizeof...(Args); ++i)
        if (is_parameter[i])
            made.fields[n++] = {op.head().arguments()[i].offset, slots[i]};
    return made;
}

} // namespace coaccel::detail

#endif
