#ifndef COACCEL_OPS_BLAS_LEVEL2_SYMMETRIC_HPP
#define COACCEL_OPS_BLAS_LEVEL2_SYMMETRIC_HPP

#include <coaccel/ops/blas/level2.hpp>

// Products of a symmetric or Hermitian matrix with a vector, and updates of one by vectors. Only the triangle `uplo` of
// the matrix is used.
namespace coaccel::blas {
namespace detail {

/// Checks the ops of this header: A is an n by n matrix, x and y have n elements.
template <class Op>
error_code check_square(const Op& o) noexcept
{
    error_code y{};
    if constexpr (requires { o.y; })
        y = check_vector(Op::name, y_names, o.n, o.incy, o.y.size());
    return first_error({
        check_value(Op::name, "uplo", o.uplo),
        o.n == 0 ? is_zero(Op::name, "n") : error_code{},
        check_matrix(Op::name, a_names, o.n, o.n, o.lda, o.a.size()),
        check_vector(Op::name, x_names, o.n, o.incx, o.x.size()),
        y,
    });
}

/// Whether the op writes every element of y and reads none.
template <class Op>
bool overwrites_y(const Op& o) noexcept
{
    return o.beta == typename Op::value_type(0) && coaccel::detail::step_of(o.incy) == 1 && o.y.size() == o.n;
}

} // namespace detail

/// y = alpha * A * x + beta * y, with A a symmetric matrix of n rows.
template <dense_element T>
struct symv {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The matrix: n by n.
    in<T> x;                             ///< The vector to multiply: n elements.
    inout<T> y;                          ///< The result: n elements. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of A.
    T alpha = 1;                         ///< The factor of the product.
    T beta = 0;                          ///< The factor of the previous y.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is read.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;               ///< The distance between elements of x; not zero.
    std::int64_t incy = 1;               ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_square(*this); }
    bool overwrites() const noexcept { return detail::overwrites_y(*this); }

    COACCEL_PURE_OP(blas, symv, void, a, x, y, n, alpha, beta, uplo, lda, incx, incy)
};

/// y = alpha * A * x + beta * y, with A a Hermitian matrix of n rows.
///
/// The imaginary parts of the diagonal of A are not used.
template <complex_element T>
struct hemv {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                             ///< The matrix: n by n.
    in<T> x;                             ///< The vector to multiply: n elements.
    inout<T> y;                          ///< The result: n elements. Not read when beta is zero.
    std::uint64_t n = 0;                 ///< Rows of A.
    T alpha = 1;                         ///< The factor of the product.
    T beta = 0;                          ///< The factor of the previous y.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is read.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;               ///< The distance between elements of x; not zero.
    std::int64_t incy = 1;               ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_square(*this); }
    bool overwrites() const noexcept { return detail::overwrites_y(*this); }

    COACCEL_PURE_OP(blas, hemv, void, a, x, y, n, alpha, beta, uplo, lda, incx, incy)
};

/// A = alpha * x * x^T + A, with A a symmetric matrix.
template <dense_element T>
struct syr {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;                             ///< The vector: n elements.
    inout<T> a;                          ///< The matrix: n by n.
    std::uint64_t n = 0;                 ///< Rows of A.
    T alpha = 1;                         ///< The factor of the product.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is updated.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;               ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_square(*this); }

    COACCEL_PURE_OP(blas, syr, void, x, a, n, alpha, uplo, lda, incx)
};

/// A = alpha * x * x^H + A, with A a Hermitian matrix.
///
/// The imaginary parts of the diagonal of A are not used, and become zero unless alpha is zero.
template <complex_element T>
struct her {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;                             ///< The vector: n elements.
    inout<T> a;                          ///< The matrix: n by n.
    std::uint64_t n = 0;                 ///< Rows of A.
    real_part<T> alpha = 1;              ///< The factor of the product.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is updated.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;               ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_square(*this); }

    COACCEL_PURE_OP(blas, her, void, x, a, n, alpha, uplo, lda, incx)
};

/// A = alpha * x * y^T + alpha * y * x^T + A, with A a symmetric matrix.
template <dense_element T>
struct syr2 {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;                             ///< One vector: n elements.
    in<T> y;                             ///< The other vector: n elements.
    inout<T> a;                          ///< The matrix: n by n.
    std::uint64_t n = 0;                 ///< Rows of A.
    T alpha = 1;                         ///< The factor of the products.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is updated.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;               ///< The distance between elements of x; not zero.
    std::int64_t incy = 1;               ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_square(*this); }

    COACCEL_PURE_OP(blas, syr2, void, x, y, a, n, alpha, uplo, lda, incx, incy)
};

/// A = alpha * x * y^H + conj(alpha) * y * x^H + A, with A a Hermitian matrix.
///
/// The imaginary parts of the diagonal of A are not used, and become zero unless alpha is zero.
template <complex_element T>
struct her2 {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> x;                             ///< One vector: n elements.
    in<T> y;                             ///< The other vector: n elements.
    inout<T> a;                          ///< The matrix: n by n.
    std::uint64_t n = 0;                 ///< Rows of A.
    T alpha = 1;                         ///< The factor of the first product.
    blas::uplo uplo = blas::uplo::lower; ///< The triangle of A that is updated.
    std::uint64_t lda = 0;               ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;               ///< The distance between elements of x; not zero.
    std::int64_t incy = 1;               ///< The distance between elements of y; not zero.

    error_code check() const noexcept { return detail::check_square(*this); }

    COACCEL_PURE_OP(blas, her2, void, x, y, a, n, alpha, uplo, lda, incx, incy)
};

namespace detail {

template <class T>
struct level2_symmetric {
    using type = type_list<symv<T>, syr<T>, syr2<T>>;
};

template <complex_element T>
struct level2_symmetric<T> {
    using type = type_list<symv<T>, syr<T>, syr2<T>, hemv<T>, her<T>, her2<T>>;
};

} // namespace detail

/// The ops of this header for one element type.
template <dense_element T>
using level2_symmetric_for = typename detail::level2_symmetric<T>::type;

} // namespace coaccel::blas

#endif
