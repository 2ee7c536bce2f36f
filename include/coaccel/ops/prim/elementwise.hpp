#ifndef COACCEL_OPS_PRIM_ELEMENTWISE_HPP
#define COACCEL_OPS_PRIM_ELEMENTWISE_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/functions.hpp>
#include <coaccel/ops/prim/layout.hpp>

// The result may be one of the operands if both have the same elements in the same order. Elements of its ref that the
// layout does not reach stay unchanged.
namespace coaccel::prim {
namespace detail {

/// Preconditions: the type of the enumeration is one of functions.hpp.
template <class Function>
error_code check_function(std::string_view op, std::string_view field, Function f, std::string_view type) noexcept
{
    return valid(f) ? error_code{} : coaccel::detail::not_enumerated(op, field, static_cast<unsigned>(f), type);
}

} // namespace detail

/// y = what(x), for each element.
template <number T>
struct unary {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                                         ///< The elements.
    inout<T> y;                                      ///< The results.
    unary_function<T> what = unary_function<T>::neg; ///< A `real_function` or an `integer_function`.
    layout<2> shape{}; ///< The layouts of x (0) and y (1); default: packed and equally long.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_function(name, "what", what,
                                             floating<T> ? "prim::real_function" : "prim::integer_function"))
            return ec;
        return detail::check_layout(name, shape, {{"x", x.raw}, {"y", y.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, y.size()); }
    std::uint64_t work() const noexcept { return static_cast<std::uint64_t>(what); } ///< Tells apart estimates.

    COACCEL_PURE_OP(prim, unary, void, x, y, what, shape)
};

/// c = what(a, b), for each element.
template <number T>
struct binary {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> a;                                           ///< The first argument.
    in<T> b;                                           ///< The second argument.
    inout<T> c;                                        ///< The results.
    binary_function<T> what = binary_function<T>::add; ///< A `real_binary` or an `integer_binary`.
    layout<3> shape{}; ///< The layouts of a (0), b (1) and c (2); default: packed and equally long.

    error_code check() const noexcept
    {
        if (auto ec =
                detail::check_function(name, "what", what, floating<T> ? "prim::real_binary" : "prim::integer_binary"))
            return ec;
        return detail::check_layout(name, shape, {{"a", a.raw}, {"b", b.raw}, {"c", c.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, c.size()); }
    std::uint64_t work() const noexcept { return static_cast<std::uint64_t>(what); } ///< Tells apart estimates.

    COACCEL_PURE_OP(prim, binary, void, a, b, c, what, shape)
};

/// c = 1 where the comparison of a and b is true, else 0.
template <number T>
struct compare {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> a;                             ///< The left side.
    in<T> b;                             ///< The right side.
    inout<std::uint8_t> c;               ///< The results.
    comparison what = comparison::equal; ///< The comparison.
    layout<3> shape{};                   ///< The layouts of a (0), b (1) and c (2); default: packed and equally long.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_function(name, "what", what, "prim::comparison"))
            return ec;
        return detail::check_layout(name, shape, {{"a", a.raw}, {"b", b.raw}, {"c", c.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, c.size()); }

    COACCEL_PURE_OP(prim, compare, void, a, b, c, what, shape)
};

/// d = what(a, b, c), for each element.
template <number T>
struct ternary {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> a;                                                ///< The first argument.
    in<T> b;                                                ///< The second argument.
    in<T> c;                                                ///< The third argument.
    inout<T> d;                                             ///< The results.
    ternary_function what = ternary_function::multiply_add; ///< The function.
    layout<4> shape{}; ///< The layouts of a (0) to d (3); default: packed and equally long.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_function(name, "what", what, "prim::ternary_function"))
            return ec;
        return detail::check_layout(name, shape, {{"a", a.raw}, {"b", b.raw}, {"c", c.raw}, {"d", d.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, d.size()); }
    std::uint64_t work() const noexcept { return static_cast<std::uint64_t>(what); } ///< Tells apart estimates.

    COACCEL_PURE_OP(prim, ternary, void, a, b, c, d, what, shape)
};

/// c = a where the mask is not zero, else b.
template <number T>
struct where {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<std::uint8_t> mask; ///< Selects a or b, such as the result of `compare`.
    in<T> a;               ///< Used where the mask is not zero.
    in<T> b;               ///< Used where the mask is zero.
    inout<T> c;            ///< The results.
    layout<4> shape{};     ///< The layouts of mask (0) to c (3); default: packed and equally long.

    error_code check() const noexcept
    {
        return detail::check_layout(name, shape, {{"mask", mask.raw}, {"a", a.raw}, {"b", b.raw}, {"c", c.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, c.size()); }

    COACCEL_PURE_OP(prim, where, void, mask, a, b, c, shape)
};

/// y = x, limited to the range from low to high. NaN stays NaN.
template <number T>
struct clamp {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;           ///< The elements.
    inout<T> y;        ///< The results.
    T low{};           ///< The least result.
    T high{};          ///< The greatest result; not less than low.
    layout<2> shape{}; ///< The layouts of x (0) and y (1); default: packed and equally long.

    error_code check() const noexcept
    {
        // Also refuses NaN.
        if (!(low <= high))
            return coaccel::detail::op_error(errc::invalid_argument, name, {"low is not at most high"});
        return detail::check_layout(name, shape, {{"x", x.raw}, {"y", y.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, y.size()); }

    COACCEL_PURE_OP(prim, clamp, void, x, y, low, high, shape)
};

/// y = x, converted to another element type. From real numbers to integers: towards zero, limited to the range of the
/// integer, and NaN becomes 0. Between integers: modulo the range. To real numbers: the nearest one, with halfway cases
/// to even; beyond the range infinity, except for fp8, which becomes the greatest finite number. A real number becomes
/// a complex one with an imaginary part of 0. There is no conversion from complex to real numbers.
template <element From, element To>
    requires castable<From, To>
struct cast {
    using value_type = To;
    using source_type = From; ///< The element type of src.

    in<From> x;        ///< The elements.
    inout<To> y;       ///< The results.
    layout<2> shape{}; ///< The layouts of x (0) and y (1); default: packed and equally long.

    error_code check() const noexcept { return detail::check_layout(name, shape, {{"x", x.raw}, {"y", y.raw}}); }
    bool overwrites() const noexcept { return detail::covers(shape.rank, shape.dims, y.size()); }

    COACCEL_PURE_OP(prim, cast, void, x, y, shape)
};

/// Element i of dst = start + i * step. Real numbers are computed in f64 and rounded once (f64: with one rounding of
/// the product and one of the sum at most); integers wrap around.
template <number T>
struct sequence {
    using value_type = T;

    out<T> dst; ///< The elements to fill.
    T start{};  ///< The first element.
    T step{};   ///< The difference between neighbours.

    error_code check() const noexcept
    {
        return dst.size() == 0 ? coaccel::detail::is_empty(name, "dst") : error_code{};
    }

    COACCEL_PURE_OP(prim, sequence, void, dst, start, step)
};

/// The ops of this header for one element type, except `cast`.
template <number T>
using elementwise_for = type_list<unary<T>, binary<T>, compare<T>, ternary<T>, where<T>, clamp<T>, sequence<T>>;

namespace detail {

template <class From, class To, bool Exists = castable<From, To>>
struct cast_entry {
    using type = boost::mp11::mp_list<>;
};

template <class From, class To>
struct cast_entry<From, To, true> {
    using type = boost::mp11::mp_list<cast<From, To>>;
};

template <class From, class... Tos>
boost::mp11::mp_rename<boost::mp11::mp_append<typename cast_entry<From, Tos>::type...>, type_list>
    casts_from(type_list<Tos...>);

} // namespace detail

/// The casts from one element type to every other one.
template <element From>
using casts_from = decltype(detail::casts_from<From>(element_types{}));

} // namespace coaccel::prim

#endif
