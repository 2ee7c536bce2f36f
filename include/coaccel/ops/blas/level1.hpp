#ifndef COACCEL_OPS_BLAS_LEVEL1_HPP
#define COACCEL_OPS_BLAS_LEVEL1_HPP

#include <coaccel/core/stored_reply.hpp>
#include <coaccel/ops/blas/common.hpp>

// Vectors have n elements at distance inc. A negative increment traverses the vector from its end, as in BLAS. Two
// operands may interleave in one buffer but must not share an element. A size of zero is errc::invalid_argument in
// every op, because it is usually a forgotten field.
namespace coaccel::blas {
namespace detail {

/// The names of a vector and its increment in error messages.
struct vector_names {
    std::string_view vector, inc;
};

inline constexpr vector_names x_names{"x", "incx"};
inline constexpr vector_names y_names{"y", "incy"};

/// Preconditions: n is not zero.
inline error_code check_vector(std::string_view op, const vector_names& names, std::uint64_t n, std::int64_t inc,
                               std::uint64_t available) noexcept
{
    if (inc == 0)
        return is_zero(op, names.inc);
    return coaccel::detail::require(op, names.vector, coaccel::detail::vector_extent(n, inc), available);
}

inline error_code check_x(std::string_view op, std::uint64_t n, std::int64_t incx, std::uint64_t available) noexcept
{
    return n == 0 ? is_zero(op, "n") : check_vector(op, x_names, n, incx, available);
}

inline error_code check_x_and_y(std::string_view op, std::uint64_t n, std::int64_t incx, std::uint64_t x_available,
                                std::int64_t incy, std::uint64_t y_available) noexcept
{
    if (auto ec = check_x(op, n, incx, x_available))
        return ec;
    return check_vector(op, y_names, n, incy, y_available);
}

inline error_code check_apart(std::string_view op, std::uint64_t n, const any_ref& x, std::int64_t incx,
                              const any_ref& y, std::int64_t incy) noexcept
{
    if (auto ec = check_x_and_y(op, n, incx, x.size, incy, y.size))
        return ec;
    if (!coaccel::detail::vectors_touch(x, incx, y, incy, n))
        return {};
    return op_error(errc::overlap, op, {"x and y have an element in common"});
}

} // namespace detail

/// y = alpha * x + y
template <dense_element T>
struct axpy {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;
    static constexpr bool may_overlap = true;

    in<T> x;               ///< The vector to add.
    inout<T> y;            ///< The vector to which it is added.
    std::uint64_t n = 0;   ///< The number of elements.
    T alpha = 1;           ///< The factor.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_apart(name, n, x.raw, incx, y.raw, incy); }

    COACCEL_PURE_OP(blas, axpy, void, x, y, n, alpha, incx, incy)
};

/// x = alpha * x
template <dense_element T>
struct scal {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    inout<T> x;            ///< The vector to scale.
    std::uint64_t n = 0;   ///< The number of elements.
    T alpha = 1;           ///< The factor.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_x(name, n, incx, x.size()); }

    COACCEL_PURE_OP(blas, scal, void, x, n, alpha, incx)
};

/// y = x
template <dense_element T>
struct copy {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;               ///< The vector to copy.
    inout<T> y;            ///< The destination; elements between the increments stay unchanged.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_apart(name, n, x.raw, incx, y.raw, incy); }
    bool overwrites() const noexcept { return coaccel::detail::step_of(incy) == 1 && y.size() == n; }

    COACCEL_PURE_OP(blas, copy, void, x, y, n, incx, incy)
};

/// Exchanges x and y.
template <dense_element T>
struct swap {
    using value_type = T;
    static constexpr bool may_overlap = true;

    inout<T> x;            ///< One vector.
    inout<T> y;            ///< The other vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_apart(name, n, x.raw, incx, y.raw, incy); }

    COACCEL_PURE_OP(blas, swap, void, x, y, n, incx, incy)
};

/// The inner product of x and y.
template <real T>
struct dot {
    using value_type = T;
    static constexpr bool storable_reply = true;

    in<T> x;               ///< One vector.
    in<T> y;               ///< The other vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_x_and_y(name, n, incx, x.size(), incy, y.size()); }

    COACCEL_PURE_OP(blas, dot, T, x, y, n, incx, incy)
};

/// The Euclidean norm of x, computed without intermediate overflow or underflow. On a GPU it is zero when every element
/// is subnormal.
template <dense_element T>
struct nrm2 {
    using value_type = T;
    static constexpr bool storable_reply = true;

    in<T> x;               ///< The vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_x(name, n, incx, x.size()); }

    /// True also for NaN.
    bool accepts(real_part<T> norm) const noexcept { return !(norm < 0); }

    COACCEL_PURE_OP(blas, nrm2, real_part<T>, x, n, incx)
};

/// The sum of the magnitudes of x. The magnitude of a complex element is |re| + |im|, as in BLAS.
template <dense_element T>
struct asum {
    using value_type = T;
    static constexpr bool storable_reply = true;

    in<T> x;               ///< The vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_x(name, n, incx, x.size()); }

    /// True also for NaN.
    bool accepts(real_part<T> sum) const noexcept { return !(sum < 0); }

    COACCEL_PURE_OP(blas, asum, real_part<T>, x, n, incx)
};

/// The zero-based index of the first element of largest magnitude. The magnitude of a complex element is |re| + |im|,
/// as in BLAS.
template <dense_element T>
struct iamax {
    using value_type = T;

    in<T> x;               ///< The vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_x(name, n, incx, x.size()); }

    bool accepts(std::uint64_t index) const noexcept { return index < n; }

    COACCEL_PURE_OP(blas, iamax, std::uint64_t, x, n, incx)
};

/// The zero-based index of the first element of smallest magnitude. The magnitude of a complex element is |re| + |im|,
/// as in BLAS.
template <dense_element T>
struct iamin {
    using value_type = T;

    in<T> x;               ///< The vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_x(name, n, incx, x.size()); }

    bool accepts(std::uint64_t index) const noexcept { return index < n; }

    COACCEL_PURE_OP(blas, iamin, std::uint64_t, x, n, incx)
};

/// The sum of the products of the elements of x and y, without conjugates.
template <complex_element T>
struct dotu {
    using value_type = T;
    static constexpr bool storable_reply = true;

    in<T> x;               ///< One vector.
    in<T> y;               ///< The other vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_x_and_y(name, n, incx, x.size(), incy, y.size()); }

    COACCEL_PURE_OP(blas, dotu, T, x, y, n, incx, incy)
};

/// The inner product of x and y: the sum of conj(x_i) * y_i.
template <complex_element T>
struct dotc {
    using value_type = T;
    static constexpr bool storable_reply = true;

    in<T> x;               ///< The vector whose conjugates are used.
    in<T> y;               ///< The other vector.
    std::uint64_t n = 0;   ///< The number of elements.
    std::int64_t incx = 1; ///< The distance between elements of x; not zero.
    std::int64_t incy = 1; ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_x_and_y(name, n, incx, x.size(), incy, y.size()); }

    COACCEL_PURE_OP(blas, dotc, T, x, y, n, incx, incy)
};

namespace detail {

template <class T>
using level1_common = type_list<axpy<T>, scal<T>, copy<T>, swap<T>, nrm2<T>, asum<T>, iamax<T>, iamin<T>>;

template <class T>
struct level1 {
    using type = boost::mp11::mp_append<level1_common<T>, type_list<dot<T>>>;
};

template <complex_element T>
struct level1<T> {
    using type = boost::mp11::mp_append<level1_common<T>, type_list<dotu<T>, dotc<T>>>;
};

} // namespace detail

/// The ops of this header for one element type.
template <dense_element T>
using level1_for = typename detail::level1<T>::type;

} // namespace coaccel::blas

#endif
