#ifndef COACCEL_OPS_BLAS_LEVEL2_TRIANGULAR_HPP
#define COACCEL_OPS_BLAS_LEVEL2_TRIANGULAR_HPP

#include <coaccel/ops/blas/level2.hpp>

// The product of a triangular matrix with a vector, and the solution of an equation. The triangle without elements is
// not read.
namespace coaccel::blas {
namespace detail {

/// Checks trmv and trsv.
template <class Op>
error_code check_triangular_vector(const Op& o) noexcept
{
    return first_error({
        check_value(Op::name, "uplo", o.uplo),
        check_value(Op::name, "trans", o.trans),
        check_value(Op::name, "diag", o.diag),
        o.n == 0 ? is_zero(Op::name, "n") : error_code{},
        check_matrix(Op::name, a_names, o.n, o.n, o.lda, o.a.size()),
        check_vector(Op::name, x_names, o.n, o.incx, o.x.size()),
    });
}

} // namespace detail

/// x = op(A) * x, with A a triangular matrix.
template <dense_element T>
struct trmv {
    using value_type = T;

    in<T> a;                                ///< The triangular matrix: n by n.
    inout<T> x;                             ///< The vector, replaced by the product: n elements.
    std::uint64_t n = 0;                    ///< Rows of A.
    blas::uplo uplo = blas::uplo::lower;    ///< The triangle of A that has elements, before it is transposed.
    transpose trans = transpose::no;        ///< Whether A is transposed.
    blas::diag diag = blas::diag::non_unit; ///< Whether the diagonal of A is read or all ones.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;                  ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_triangular_vector(*this); }

    COACCEL_PURE_OP(blas, trmv, void, a, x, n, uplo, trans, diag, lda, incx)
};

/// Solves op(A) * x = b, with A a triangular matrix, and replaces b by x.
///
/// It is not checked whether A is singular: a zero on its diagonal gives infinite elements or NaN.
template <dense_element T>
struct trsv {
    using value_type = T;

    in<T> a;                                ///< The triangular matrix: n by n.
    inout<T> x;                             ///< The right-hand side, replaced by the solution: n elements.
    std::uint64_t n = 0;                    ///< Rows of A.
    blas::uplo uplo = blas::uplo::lower;    ///< The triangle of A that has elements, before it is transposed.
    transpose trans = transpose::no;        ///< Whether A is transposed.
    blas::diag diag = blas::diag::non_unit; ///< Whether the diagonal of A is read or all ones.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::int64_t incx = 1;                  ///< The distance between elements of x; not zero.

    error_code check() const noexcept { return detail::check_triangular_vector(*this); }

    COACCEL_PURE_OP(blas, trsv, void, a, x, n, uplo, trans, diag, lda, incx)
};

/// The ops of this header for one element type.
template <dense_element T>
using level2_triangular_for = type_list<trmv<T>, trsv<T>>;

} // namespace coaccel::blas

#endif
