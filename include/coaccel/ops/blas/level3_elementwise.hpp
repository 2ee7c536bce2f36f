#ifndef COACCEL_OPS_BLAS_LEVEL3_ELEMENTWISE_HPP
#define COACCEL_OPS_BLAS_LEVEL3_ELEMENTWISE_HPP

#include <coaccel/ops/blas/level2.hpp>

// Sums of matrices, and products with a diagonal matrix: extensions of BLAS that cuBLAS has.
namespace coaccel::blas {
namespace detail {

/// Whether the op writes every element of C, an m by n matrix.
template <class Op>
bool fills_c(const Op& o) noexcept
{
    return (o.ldc == 0 || o.ldc == o.m) && o.c.size() == coaccel::detail::times(o.m, o.n);
}

} // namespace detail

/// C = alpha * op(A) + beta * op(B), with op(A), op(B) and C m by n matrices.
///
/// With beta zero it scales, copies or transposes A. A is not read when alpha is zero, B not when beta is zero.
template <dense_element T>
struct geam {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_and_beta;

    in<T> a;                           ///< One matrix: m by n, or n by m when transposed.
    in<T> b;                           ///< The other matrix: m by n, or n by m when transposed. May be A.
    inout<T> c;                        ///< The sum: m by n. Not read.
    std::uint64_t m = 0;               ///< Rows of op(A), op(B) and C.
    std::uint64_t n = 0;               ///< Columns of op(A), op(B) and C.
    T alpha = 1;                       ///< The factor of A.
    T beta = 0;                        ///< The factor of B.
    transpose trans_a = transpose::no; ///< Whether A is transposed.
    transpose trans_b = transpose::no; ///< Whether B is transposed.
    std::uint64_t lda = 0;             ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;             ///< The distance between columns of B; zero: packed.
    std::uint64_t ldc = 0;             ///< The distance between columns of C; zero: packed.

    constexpr std::uint64_t a_rows() const noexcept { return trans_a == transpose::no ? m : n; } ///< Rows of A.
    constexpr std::uint64_t a_cols() const noexcept { return trans_a == transpose::no ? n : m; } ///< Columns of A.
    constexpr std::uint64_t b_rows() const noexcept { return trans_b == transpose::no ? m : n; } ///< Rows of B.
    constexpr std::uint64_t b_cols() const noexcept { return trans_b == transpose::no ? n : m; } ///< Columns of B.

    error_code check() const noexcept
    {
        return detail::first_error({
            detail::check_value(name, "trans_a", trans_a),
            detail::check_value(name, "trans_b", trans_b),
            detail::check_sides(name, m, n),
            detail::check_matrix(name, detail::a_names, a_rows(), a_cols(), lda, a.size()),
            detail::check_matrix(name, detail::b_names, b_rows(), b_cols(), ldb, b.size()),
            detail::check_matrix(name, detail::c_names, m, n, ldc, c.size()),
        });
    }

    bool overwrites() const noexcept { return detail::fills_c(*this); }

    COACCEL_PURE_OP(blas, geam, void, a, b, c, m, n, alpha, beta, trans_a, trans_b, lda, ldb, ldc)
};

/// C = diag(x) * A, or A * diag(x), with A and C m by n matrices.
template <dense_element T>
struct dgmm {
    using value_type = T;

    in<T> a;                            ///< The matrix: m by n.
    in<T> x;                            ///< The diagonal: m elements on the left, n on the right.
    inout<T> c;                         ///< The product: m by n. Not read.
    std::uint64_t m = 0;                ///< Rows of A and C.
    std::uint64_t n = 0;                ///< Columns of A and C.
    blas::side side = blas::side::left; ///< The side of the diagonal matrix in the product.
    std::uint64_t lda = 0;              ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;              ///< The distance between elements of x; not zero.
    std::uint64_t ldc = 0;              ///< The distance between columns of C; zero: packed.

    constexpr std::uint64_t x_size() const noexcept { return side == blas::side::left ? m : n; } ///< Elements of x.

    error_code check() const noexcept
    {
        return detail::first_error({
            detail::check_value(name, "side", side),
            detail::check_sides(name, m, n),
            detail::check_matrix(name, detail::a_names, m, n, lda, a.size()),
            detail::check_vector(name, detail::x_names, x_size(), incx, x.size()),
            detail::check_matrix(name, detail::c_names, m, n, ldc, c.size()),
        });
    }

    bool overwrites() const noexcept { return detail::fills_c(*this); }

    COACCEL_PURE_OP(blas, dgmm, void, a, x, c, m, n, side, lda, incx, ldc)
};

/// The ops of this header for one element type.
template <dense_element T>
using level3_elementwise_for = type_list<geam<T>, dgmm<T>>;

} // namespace coaccel::blas

#endif
