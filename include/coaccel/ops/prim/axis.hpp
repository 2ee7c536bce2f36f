#ifndef COACCEL_OPS_PRIM_AXIS_HPP
#define COACCEL_OPS_PRIM_AXIS_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/shape.hpp>
#include <coaccel/ops/prim/layout.hpp>

#include <cstdint>
#include <string_view>

// Ops along an axis of packed tensors: the axis has n elements, and the shape is outer x n x inner.
namespace coaccel::prim::detail {

inline error_code check_axis(std::string_view op, std::uint64_t outer, std::uint64_t n, std::uint64_t inner) noexcept
{
    if (outer == 0)
        return coaccel::detail::is_zero(op, "outer");
    if (n == 0)
        return coaccel::detail::is_zero(op, "n");
    return inner == 0 ? coaccel::detail::is_zero(op, "inner") : error_code{};
}

/// Checks that a packed operand has outer x n x inner elements.
inline error_code require_axis(std::string_view op, std::string_view field, std::uint64_t outer,
                               coaccel::detail::extent n, std::uint64_t inner, std::uint64_t available) noexcept
{
    using coaccel::detail::times;
    return coaccel::detail::require(op, field, times(times(outer, n), inner), available);
}

/// Checks an op with packed operands x and y, which may be the same, and an axis.
template <class Op>
error_code check_along_axis(const Op& op) noexcept
{
    if (auto ec = check_axis(Op::name, op.outer, op.n, op.inner))
        return ec;
    return check_layout(Op::name, layout<2>::packed({op.outer, op.n, op.inner}), {{"x", op.x.raw}, {"y", op.y.raw}});
}

/// Checks a shape of 1 to 6 dimensions.
inline error_code check_dims(std::string_view op, std::uint64_t rank, const dimensions& dims) noexcept
{
    if (rank == 0)
        return coaccel::detail::is_zero(op, "rank");
    if (rank > most_dimensions)
        return coaccel::detail::op_error(errc::invalid_argument, op,
                                         {"rank is ", rank, ", at most ", most_dimensions, " dimensions are possible"});
    for (std::size_t d = 0; d < rank; ++d)
        if (dims[d] == 0)
            return coaccel::detail::op_error(errc::invalid_argument, op, {"dims[", d, "] is 0"});
    return {};
}

} // namespace coaccel::prim::detail

#endif
