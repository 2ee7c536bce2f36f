#ifndef COACCEL_OPS_BLAS_LEVEL2_HPP
#define COACCEL_OPS_BLAS_LEVEL2_HPP

#include <coaccel/ops/blas_level1.hpp>

namespace coaccel::blas {
namespace detail {

/// A leading dimension of zero means "packed": the number of rows.
constexpr std::uint64_t effective_ld(std::uint64_t ld, std::uint64_t rows) noexcept
{
    return ld == 0 ? rows : ld;
}

inline error_code check_matrix(std::uint64_t rows, std::uint64_t cols, std::uint64_t ld,
                               std::uint64_t available) noexcept
{
    if (rows == 0 || cols == 0)
        return errc::invalid_argument;
    if (ld != 0 && ld < rows)
        return errc::leading_dimension;
    return coaccel::detail::require(coaccel::detail::matrix_extent(rows, cols, effective_ld(ld, rows)), available);
}

} // namespace detail

/// y = alpha * op(A) * x + beta * y, with A an m by n matrix.
template <real T>
struct gemv {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.gemv";
    static constexpr library lib = library::blas;

    in<T> a;
    in<T> x;
    inout<T> y;
    std::uint64_t m = 0;
    std::uint64_t n = 0;
    T alpha = 1;
    T beta = 0;
    transpose trans = transpose::no;
    std::uint64_t lda = 0;
    std::int64_t incx = 1;
    std::int64_t incy = 1;

    constexpr std::uint64_t x_size() const noexcept { return trans == transpose::no ? n : m; }
    constexpr std::uint64_t y_size() const noexcept { return trans == transpose::no ? m : n; }

    error_code check() const noexcept
    {
        if (!valid(trans))
            return errc::invalid_argument;
        if (auto ec = detail::check_matrix(m, n, lda, a.size()))
            return ec;
        if (auto ec = detail::check_vector(x_size(), incx, x.size()))
            return ec;
        return detail::check_vector(y_size(), incy, y.size());
    }

    BOOST_DESCRIBE_CLASS(gemv, (), (a, x, y, m, n, alpha, beta, trans, lda, incx, incy), (), ())
};

/// A = alpha * x * y^T + A, with A an m by n matrix.
template <real T>
struct ger {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "blas.ger";
    static constexpr library lib = library::blas;

    in<T> x;
    in<T> y;
    inout<T> a;
    std::uint64_t m = 0;
    std::uint64_t n = 0;
    T alpha = 1;
    std::uint64_t lda = 0;
    std::int64_t incx = 1;
    std::int64_t incy = 1;

    error_code check() const noexcept
    {
        if (auto ec = detail::check_matrix(m, n, lda, a.size()))
            return ec;
        if (auto ec = detail::check_vector(m, incx, x.size()))
            return ec;
        return detail::check_vector(n, incy, y.size());
    }

    BOOST_DESCRIBE_CLASS(ger, (), (x, y, a, m, n, alpha, lda, incx, incy), (), ())
};

} // namespace coaccel::blas

#endif
