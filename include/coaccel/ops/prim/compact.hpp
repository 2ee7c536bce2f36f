#ifndef COACCEL_OPS_PRIM_COMPACT_HPP
#define COACCEL_OPS_PRIM_COMPACT_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/axis.hpp>
#include <coaccel/ops/prim/types.hpp>

// Ops that keep some elements, in their order. How many is known on the device only, where later ops can read it. A
// result may have fewer elements than there are to keep: the others are then left out, but counted. The results are
// other memory than the operands.
namespace coaccel::prim {
namespace detail {

inline error_code check_compaction(std::string_view op, std::uint64_t n, const placed_operand& x,
                                   const placed_operand& y, std::uint64_t counts) noexcept
{
    if (n == 0)
        return coaccel::detail::is_zero(op, "n");
    if (auto ec = coaccel::detail::require(op, x.field, n, x.ref.size))
        return ec;
    if (y.ref.size == 0)
        return coaccel::detail::is_empty(op, y.field);
    if (counts == 1)
        return {};
    return coaccel::detail::op_error(errc::length_mismatch, op, {"count has ", counts, " elements, must have 1"});
}

} // namespace detail

/// y = the elements of x whose mask is not zero, in their order. The mask can be the result of `compare`. The elements
/// of y behind them become zero.
template <element T>
struct select {
    using value_type = T;

    in<T> x;                  ///< The elements.
    in<std::uint8_t> mask;    ///< One number for each element; not zero: it is kept.
    out<T> y;                 ///< The elements kept, as many as have room.
    out<std::uint64_t> count; ///< One number: how many elements are kept, also if y has fewer.
    std::uint64_t n = 0;      ///< The number of elements of x.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_compaction(name, n, {"x", x.raw}, {"y", y.raw}, count.size()))
            return ec;
        return coaccel::detail::require(name, "mask", n, mask.size());
    }

    COACCEL_PURE_OP(prim, select, void, x, mask, y, count, n)
};

/// y = the first element of each run of equal elements, so that sorted elements become different ones. As in `sort`,
/// all NaN are equal, and so are both zeros. The elements of y behind them become zero.
template <number T>
struct unique {
    using value_type = T;

    in<T> x;                  ///< The elements.
    out<T> y;                 ///< The first element of each run, as many as have room.
    out<std::uint64_t> count; ///< One number: how many runs there are, also if y has fewer elements.
    std::uint64_t n = 0;      ///< The number of elements of x.

    error_code check() const noexcept
    {
        return detail::check_compaction(name, n, {"x", x.raw}, {"y", y.raw}, count.size());
    }

    COACCEL_PURE_OP(prim, unique, void, x, y, count, n)
};

/// values = the first element of each run of equal elements, and lengths = the number of elements of each run. As in
/// `sort`, all NaN are equal, and so are both zeros. The elements of both results behind them become zero.
template <number T>
struct run_length {
    using value_type = T;

    in<T> x;                    ///< The elements.
    out<T> values;              ///< The first element of each run, as many as have room.
    out<std::uint64_t> lengths; ///< The length of each run; as many elements as values.
    out<std::uint64_t> count;   ///< One number: how many runs there are, also if values has fewer elements.
    std::uint64_t n = 0;        ///< The number of elements of x.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_compaction(name, n, {"x", x.raw}, {"values", values.raw}, count.size()))
            return ec;
        if (lengths.size() == values.size())
            return {};
        return coaccel::detail::op_error(errc::length_mismatch, name,
                                         {"lengths has ", lengths.size(), " elements, values ", values.size()});
    }

    COACCEL_PURE_OP(prim, run_length, void, x, values, lengths, count, n)
};

/// The ops of this header for one element type.
template <element T>
using selections_for = type_list<select<T>>;

/// \copydoc selections_for
template <number T>
using runs_for = type_list<unique<T>, run_length<T>>;

} // namespace coaccel::prim

#endif
