#ifndef COACCEL_OPS_BLAS_LEVEL3_BATCHED_HPP
#define COACCEL_OPS_BLAS_LEVEL3_BATCHED_HPP

#include <coaccel/ops/blas/batches.hpp>

namespace coaccel::blas {

/// `batch` solutions like trsm; matrix i of each operand starts i * stride elements after the first one.
///
/// The stride of A may be zero (one matrix for all equations); the matrices of B must not overlap.
template <dense_element T>
struct trsm_batched {
    using value_type = T;
    static constexpr auto scalars = detail::alpha_only;

    in<T> a;                                ///< The triangular matrices: m by m on the left, n by n on the right.
    inout<T> b;                             ///< The right-hand sides, replaced by the solutions: m by n.
    std::uint64_t m = 0;                    ///< Rows of B.
    std::uint64_t n = 0;                    ///< Columns of B.
    std::uint64_t batch = 0;                ///< The number of equations.
    std::uint64_t stride_a = 0;             ///< The distance between matrices A; zero: one matrix for all equations.
    std::uint64_t stride_b = 0;             ///< The distance between matrices B; at least the extent of one.
    T alpha = 1;                            ///< The factor of B.
    blas::side side = blas::side::left;     ///< The side of A in the equation.
    blas::uplo uplo = blas::uplo::lower;    ///< The triangle of A that has elements, before it is transposed.
    transpose trans = transpose::no;        ///< Whether A is transposed.
    blas::diag diag = blas::diag::non_unit; ///< Whether the diagonal of A is read or all ones.
    std::uint64_t lda = 0;                  ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;                  ///< The distance between columns of B; zero: packed.

    constexpr std::uint64_t order() const noexcept
    {
        return side == blas::side::left ? m : n;
    } ///< Rows and columns of A.

    error_code check() const noexcept
    {
        return detail::first_error({
            detail::check_value(name, "side", side),
            detail::check_value(name, "uplo", uplo),
            detail::check_value(name, "trans", trans),
            detail::check_value(name, "diag", diag),
            detail::check_sides(name, m, n),
            batch == 0 ? detail::is_zero(name, "batch") : error_code{},
            detail::matrix_batch{order(), order(), lda, stride_a, batch, a.size()}.check(name, detail::a_batch),
            detail::matrix_batch{m, n, ldb, stride_b, batch, b.size()}.check_apart(name, detail::b_batch),
        });
    }

    COACCEL_PURE_OP(blas, trsm_batched, void, a, b, m, n, batch, stride_a, stride_b, alpha, side, uplo, trans, diag,
                    lda, ldb)
};

/// The ops of this header for one element type.
template <dense_element T>
using level3_batched_for = type_list<trsm_batched<T>>;

} // namespace coaccel::blas

#endif
