#ifndef COACCEL_OPS_BLAS_LEVEL3_TRIANGULAR_HPP
#define COACCEL_OPS_BLAS_LEVEL3_TRIANGULAR_HPP

#include <coaccel/ops/blas/level2.hpp>

// Products with, and solutions of systems with, a triangular matrix A. The triangle without elements is not read.
namespace coaccel::blas {
namespace detail {

/// Checks trmm and trsm: A is square, on the given side of B.
template <class Op>
error_code check_triangular(const Op& o) noexcept
{
    const std::uint64_t order = o.side == side::left ? o.m : o.n;
    return first_error({
        check_value(Op::name, "side", o.side),
        check_value(Op::name, "uplo", o.uplo),
        check_value(Op::name, "trans", o.trans),
        check_value(Op::name, "diag", o.diag),
        check_sides(Op::name, o.m, o.n),
        check_matrix(Op::name, a_names, order, order, o.lda, o.a.size()),
        check_matrix(Op::name, b_names, o.m, o.n, o.ldb, o.b.size()),
    });
}

} // namespace detail

/// B = alpha * op(A) * B, or alpha * B * op(A), with A a triangular matrix and B an m by n matrix.
///
/// A and B are not read when alpha is zero.
template <dense_element T>
struct trmm {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> a;                                ///< The triangular matrix: m by m on the left, n by n on the right.
    inout<T> b;                             ///< The other factor, replaced by the product: m by n.
    std::uint64_t m = 0;                    ///< Rows of B.
    std::uint64_t n = 0;                    ///< Columns of B.
    T alpha = 1;                            ///< The factor of the product.
    blas::side side = blas::side::left;     ///< The side of A in the product.
    blas::uplo uplo = blas::uplo::lower;    ///< The triangle of A that has elements, before it is transposed.
    transpose trans = transpose::no;        ///< Whether A is transposed.
    blas::diag diag = blas::diag::non_unit; ///< Whether the diagonal of A is read or all ones.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                  ///< The distance between columns of B; zero: packed.

    error_code check() const noexcept { return detail::check_triangular(*this); }

    COACCEL_PURE_OP(blas, trmm, void, a, b, m, n, alpha, side, uplo, trans, diag, lda, ldb)
};

/// Solves op(A) * X = alpha * B, or X * op(A) = alpha * B, with A a triangular matrix, and replaces B, an m by n
/// matrix, by X.
///
/// It is not checked whether A is singular: a zero on its diagonal gives infinite elements or NaN. A and B are not read
/// when alpha is zero.
template <dense_element T>
struct trsm {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> a;                                ///< The triangular matrix: m by m on the left, n by n on the right.
    inout<T> b;                             ///< The right-hand sides, replaced by the solutions: m by n.
    std::uint64_t m = 0;                    ///< Rows of B.
    std::uint64_t n = 0;                    ///< Columns of B.
    T alpha = 1;                            ///< The factor of B.
    blas::side side = blas::side::left;     ///< The side of A in the equation.
    blas::uplo uplo = blas::uplo::lower;    ///< The triangle of A that has elements, before it is transposed.
    transpose trans = transpose::no;        ///< Whether A is transposed.
    blas::diag diag = blas::diag::non_unit; ///< Whether the diagonal of A is read or all ones.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                  ///< The distance between columns of B; zero: packed.

    error_code check() const noexcept { return detail::check_triangular(*this); }

    COACCEL_PURE_OP(blas, trsm, void, a, b, m, n, alpha, side, uplo, trans, diag, lda, ldb)
};

/// The ops of this header for one element type.
template <dense_element T>
using level3_triangular_for = type_list<trmm<T>, trsm<T>>;

} // namespace coaccel::blas

#endif
