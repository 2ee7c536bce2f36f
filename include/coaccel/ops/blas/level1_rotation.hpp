#ifndef COACCEL_OPS_BLAS_LEVEL1_ROTATION_HPP
#define COACCEL_OPS_BLAS_LEVEL1_ROTATION_HPP

#include <coaccel/ops/blas/level1.hpp>

// Givens rotations.
namespace coaccel::blas {
namespace detail {

inline constexpr std::array<std::string_view, 2> cosine_and_sine{"c", "s"};

inline error_code check_single(std::string_view op, std::string_view field, std::uint64_t size) noexcept
{
    if (size == 1)
        return {};
    return op_error(errc::length_mismatch, op, {field, " has ", size, " elements, must have 1"});
}

} // namespace detail

/// Rotates pairs of elements: x = c * x + s * y, and y = c * y - conj(s) * x with the previous x.
template <dense_element T>
struct rot {
    using value_type = T;
    static constexpr auto scalars = detail::cosine_and_sine;
    static constexpr bool may_overlap = true;

    inout<T> x;            ///< The first elements of the pairs.
    inout<T> y;            ///< The second elements of the pairs.
    std::uint64_t n = 0;   ///< The number of pairs.
    real_part<T> c = 1;    ///< The cosine.
    T s = 0;               ///< The sine.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_apart(name, n, x.raw, incx, y.raw, incy); }

    COACCEL_PURE_OP(blas, rot, void, x, y, n, c, s, incx, incy)
};

/// Finds the rotation with c * a + s * b = r and c * b - conj(s) * a = 0. All operands are single elements.
template <dense_element T>
struct rotg {
    using value_type = T;
    using real_type = real_part<T>; ///< The type of c.

    inout<T> a;       ///< The first element of a pair, replaced by r.
    inout<T> b;       ///< The second one. With real elements replaced by z, from which BLAS can restore c and s.
    out<real_type> c; ///< The cosine.
    out<T> s;         ///< The sine.

    error_code check() const noexcept
    {
        return detail::first_error({
            detail::check_single(name, "a", a.size()),
            detail::check_single(name, "b", b.size()),
            detail::check_single(name, "c", c.size()),
            detail::check_single(name, "s", s.size()),
        });
    }

    COACCEL_PURE_OP(blas, rotg, void, a, b, c, s)
};

/// The ops of this header for one element type.
template <dense_element T>
using level1_rotation_for = type_list<rot<T>, rotg<T>>;

} // namespace coaccel::blas

#endif
