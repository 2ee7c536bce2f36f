#ifndef COACCEL_OPS_BLAS_LEVEL1_HPP
#define COACCEL_OPS_BLAS_LEVEL1_HPP

#include <coaccel/ops/blas_common.hpp>

// Vectors: n elements, inc apart. A negative increment runs through the vector from its end, as in
// BLAS. Two operands may interleave in one buffer but not share an element. A size of zero is
// errc::invalid_argument in every op: far more often a field left out than a wish to do nothing.
namespace coaccel::blas {
namespace detail {

inline error_code check_vector(std::uint64_t n, std::int64_t inc, std::uint64_t available) noexcept
{
    if (n == 0 || inc == 0)
        return errc::invalid_argument;
    return coaccel::detail::require(coaccel::detail::vector_extent(n, inc), available);
}

inline error_code check_vectors(std::uint64_t n, const any_ref& x, std::int64_t incx, const any_ref& y,
                                std::int64_t incy) noexcept
{
    if (auto ec = check_vector(n, incx, x.size))
        return ec;
    if (auto ec = check_vector(n, incy, y.size))
        return ec;
    return coaccel::detail::vectors_touch(x, incx, y, incy, n) ? make_error_code(errc::overlap) : error_code{};
}

} // namespace detail

/// y = alpha * x + y
template <real T>
struct axpy {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.axpy";
    static constexpr library lib = library::blas;
    static constexpr bool may_overlap = true;

    in<T> x;
    inout<T> y;
    std::uint64_t n = 0;
    T alpha = 1;
    std::int64_t incx = 1;
    std::int64_t incy = 1;

    error_code check() const noexcept { return detail::check_vectors(n, x.raw, incx, y.raw, incy); }

    BOOST_DESCRIBE_CLASS(axpy, (), (x, y, n, alpha, incx, incy), (), ())
};

/// x = alpha * x
template <real T>
struct scal {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.scal";
    static constexpr library lib = library::blas;

    inout<T> x;
    std::uint64_t n = 0;
    T alpha = 1;
    std::int64_t incx = 1;

    error_code check() const noexcept { return detail::check_vector(n, incx, x.size()); }

    BOOST_DESCRIBE_CLASS(scal, (), (x, n, alpha, incx), (), ())
};

/// y = x
template <real T>
struct copy {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.copy";
    static constexpr library lib = library::blas;
    static constexpr bool may_overlap = true;

    in<T> x;
    inout<T> y;
    std::uint64_t n = 0;
    std::int64_t incx = 1;
    std::int64_t incy = 1;

    error_code check() const noexcept { return detail::check_vectors(n, x.raw, incx, y.raw, incy); }

    BOOST_DESCRIBE_CLASS(copy, (), (x, y, n, incx, incy), (), ())
};

/// Exchanges x and y.
template <real T>
struct swap {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.swap";
    static constexpr library lib = library::blas;
    static constexpr bool may_overlap = true;

    inout<T> x;
    inout<T> y;
    std::uint64_t n = 0;
    std::int64_t incx = 1;
    std::int64_t incy = 1;

    error_code check() const noexcept { return detail::check_vectors(n, x.raw, incx, y.raw, incy); }

    BOOST_DESCRIBE_CLASS(swap, (), (x, y, n, incx, incy), (), ())
};

/// The inner product of x and y.
template <real T>
struct dot {
    using value_type = T;
    using reply = T;
    static constexpr std::string_view name = "blas.dot";
    static constexpr library lib = library::blas;

    in<T> x;
    in<T> y;
    std::uint64_t n = 0;
    std::int64_t incx = 1;
    std::int64_t incy = 1;

    error_code check() const noexcept
    {
        if (auto ec = detail::check_vector(n, incx, x.size()))
            return ec;
        return detail::check_vector(n, incy, y.size());
    }

    BOOST_DESCRIBE_CLASS(dot, (), (x, y, n, incx, incy), (), ())
};

/// The Euclidean norm of x, without overflow or underflow on the way. On a GPU it is zero when every element is
/// subnormal.
template <real T>
struct nrm2 {
    using value_type = T;
    using reply = T;
    static constexpr std::string_view name = "blas.nrm2";
    static constexpr library lib = library::blas;

    in<T> x;
    std::uint64_t n = 0;
    std::int64_t incx = 1;

    error_code check() const noexcept { return detail::check_vector(n, incx, x.size()); }

    BOOST_DESCRIBE_CLASS(nrm2, (), (x, n, incx), (), ())
};

/// The sum of the magnitudes of x.
template <real T>
struct asum {
    using value_type = T;
    using reply = T;
    static constexpr std::string_view name = "blas.asum";
    static constexpr library lib = library::blas;

    in<T> x;
    std::uint64_t n = 0;
    std::int64_t incx = 1;

    error_code check() const noexcept { return detail::check_vector(n, incx, x.size()); }

    BOOST_DESCRIBE_CLASS(asum, (), (x, n, incx), (), ())
};

/// The index, from zero, of the first element of largest magnitude.
template <real T>
struct iamax {
    using value_type = T;
    using reply = std::uint64_t;
    static constexpr std::string_view name = "blas.iamax";
    static constexpr library lib = library::blas;

    in<T> x;
    std::uint64_t n = 0;
    std::int64_t incx = 1;

    error_code check() const noexcept { return detail::check_vector(n, incx, x.size()); }

    BOOST_DESCRIBE_CLASS(iamax, (), (x, n, incx), (), ())
};

} // namespace coaccel::blas

#endif
