#ifndef COACCEL_OPS_BLAS_LU_BATCHED_HPP
#define COACCEL_OPS_BLAS_LU_BATCHED_HPP

#include <coaccel/ops/blas/batches.hpp>

// LU factorizations of many small matrices, and what is made of them. Pivots are those of LAPACK: in step j, rows j and
// pivots[j] - 1 of the matrix were exchanged. A singular matrix does not fail the op: info, which is read with
// async_download like any buffer, has one number for each matrix. On a GPU one block of threads computes one matrix, so
// the ops are for orders up to a few hundred.
namespace coaccel::blas {
namespace detail {

/// Checks the ops of this header.
template <class Op>
error_code check_lu(const Op& o) noexcept
{
    constexpr auto op = Op::name;
    error_code trans, right, c, pivots, info;
    if constexpr (requires { o.pivots; })
        pivots = check_packed(op, "pivots", o.n, o.batch, o.pivots.size());
    if constexpr (requires { o.info; })
        info = check_packed(op, "info", 1, o.batch, o.info.size());
    if constexpr (requires { o.b; }) {
        const matrix_batch b{o.n, o.nrhs, o.ldb, o.stride_b, o.batch, o.b.size()};
        trans = check_value(op, "trans", o.trans);
        right = first_error({
            check_size(op, "nrhs", o.nrhs),
            check_int_span(op, b_names, b),
            b.check_apart(op, b_batch),
        });
    }
    if constexpr (requires { o.c; }) {
        const matrix_batch inverse{o.n, o.n, o.ldc, o.stride_c, o.batch, o.c.size()};
        c = first_error({check_int_span(op, c_names, inverse), inverse.check_apart(op, c_batch)});
    }
    const matrix_batch a{o.n, o.n, o.lda, o.stride_a, o.batch, o.a.size()};
    const bool in_place = std::is_same_v<decltype(o.a), inout<typename Op::value_type>>;
    return first_error({
        trans,
        check_size(op, "n", o.n),
        check_size(op, "batch", o.batch),
        check_int_span(op, a_names, a),
        in_place ? a.check_apart(op, a_batch) : a.check(op, a_batch),
        right,
        c,
        pivots,
        info,
    });
}

} // namespace detail

/// P * A = L * U for each of `batch` matrices, with row exchanges P, L lower triangular with ones on its diagonal, and
/// U upper triangular.
///
/// A matrix is singular if the diagonal of U has a zero; the rest of its factorization is then unspecified. `info` is
/// read like any buffer, with `async_download` after the op.
///
/// On a GPU one block of threads computes one matrix: it is for orders up to a few hundred. Matrices with an order of
/// thousands take seconds, which count towards `context.hang_timeout`.
template <dense_element T>
struct getrf_batched {
    using value_type = T;

    inout<T> a;                 ///< The matrices: n by n, replaced by U and, below its diagonal, L.
    out<std::int32_t> pivots;   ///< n for each matrix: row j was exchanged with row `pivots[j] - 1`, as in LAPACK.
    out<std::int32_t> info;     ///< One for each matrix: 0, or k if the k-th element of U's diagonal is the first zero.
    std::uint64_t n = 0;        ///< Rows and columns of a matrix.
    std::uint64_t batch = 0;    ///< The number of matrices.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; at least the extent of one.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.

    error_code check() const noexcept { return detail::check_lu(*this); }

    COACCEL_PURE_OP(blas, getrf_batched, void, a, pivots, info, n, batch, stride_a, lda)
};

/// A = L * U for each of `batch` matrices, as getrf_batched, without exchanges of rows.
///
/// It is faster, and accurate only if the elements of the diagonal dominate. A matrix need not be singular to have a
/// zero on the diagonal of U.
template <dense_element T>
struct getrf_nopivot_batched {
    using value_type = T;

    inout<T> a;                 ///< The matrices: n by n, replaced by U and, below its diagonal, L.
    out<std::int32_t> info;     ///< One for each matrix: 0, or k if the k-th element of U's diagonal is the first zero.
    std::uint64_t n = 0;        ///< Rows and columns of a matrix.
    std::uint64_t batch = 0;    ///< The number of matrices.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; at least the extent of one.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.

    error_code check() const noexcept { return detail::check_lu(*this); }

    COACCEL_PURE_OP(blas, getrf_nopivot_batched, void, a, info, n, batch, stride_a, lda)
};

/// Solves op(A) * X = B for each of `batch` matrices that getrf_batched has factorized, and replaces B by X.
///
/// A zero on the diagonal of U gives infinite elements or NaN. Other pivots than those of getrf_batched are not
/// detected: one below 1 counts as 1, one above n as n.
template <dense_element T>
struct getrs_batched {
    using value_type = T;

    in<T> a;                         ///< The matrices as getrf_batched leaves them: n by n.
    in<std::int32_t> pivots;         ///< The exchanges of getrf_batched: n for each matrix, also if stride_a is zero.
    inout<T> b;                      ///< The right-hand sides, replaced by the solutions: n by nrhs.
    std::uint64_t n = 0;             ///< Rows and columns of A, and rows of B.
    std::uint64_t nrhs = 0;          ///< Columns of B.
    std::uint64_t batch = 0;         ///< The number of matrices.
    std::uint64_t stride_a = 0;      ///< The distance between matrices A; zero: one matrix for all equations.
    std::uint64_t stride_b = 0;      ///< The distance between matrices B; at least the extent of one.
    transpose trans = transpose::no; ///< Whether A is transposed.
    std::uint64_t lda = 0;           ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;           ///< The distance between columns of B; zero: packed.

    error_code check() const noexcept { return detail::check_lu(*this); }

    COACCEL_PURE_OP(blas, getrs_batched, void, a, pivots, b, n, nrhs, batch, stride_a, stride_b, trans, lda, ldb)
};

/// As getrs_batched, with matrices that getrf_nopivot_batched has factorized.
template <dense_element T>
struct getrs_nopivot_batched {
    using value_type = T;

    in<T> a;                         ///< The matrices as getrf_nopivot_batched leaves them: n by n.
    inout<T> b;                      ///< The right-hand sides, replaced by the solutions: n by nrhs.
    std::uint64_t n = 0;             ///< Rows and columns of A, and rows of B.
    std::uint64_t nrhs = 0;          ///< Columns of B.
    std::uint64_t batch = 0;         ///< The number of matrices.
    std::uint64_t stride_a = 0;      ///< The distance between matrices A; zero: one matrix for all equations.
    std::uint64_t stride_b = 0;      ///< The distance between matrices B; at least the extent of one.
    transpose trans = transpose::no; ///< Whether A is transposed.
    std::uint64_t lda = 0;           ///< The distance between columns of A; zero: packed.
    std::uint64_t ldb = 0;           ///< The distance between columns of B; zero: packed.

    error_code check() const noexcept { return detail::check_lu(*this); }

    COACCEL_PURE_OP(blas, getrs_nopivot_batched, void, a, b, n, nrhs, batch, stride_a, stride_b, trans, lda, ldb)
};

/// C = the inverse of each of `batch` matrices that getrf_batched has factorized.
///
/// The inverse of a singular matrix is unspecified. Pivots are limited as in getrs_batched.
template <dense_element T>
struct getri_batched {
    using value_type = T;

    in<T> a;                    ///< The matrices as getrf_batched leaves them: n by n.
    in<std::int32_t> pivots;    ///< The exchanges of getrf_batched: n for each matrix, also if stride_a is zero.
    inout<T> c;                 ///< The inverses: n by n. Not read.
    out<std::int32_t> info;     ///< One for each matrix: 0, or k if the k-th element of U's diagonal is the first zero.
    std::uint64_t n = 0;        ///< Rows and columns of A and C.
    std::uint64_t batch = 0;    ///< The number of matrices.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; zero: one matrix for all.
    std::uint64_t stride_c = 0; ///< The distance between matrices C; at least the extent of one.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.
    std::uint64_t ldc = 0;      ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_lu(*this); }

    bool overwrites() const noexcept { return detail::matrix_batch{n, n, ldc, stride_c, batch, c.size()}.fills(); }

    COACCEL_PURE_OP(blas, getri_batched, void, a, pivots, c, info, n, batch, stride_a, stride_c, lda, ldc)
};

/// As getri_batched, with matrices that getrf_nopivot_batched has factorized.
template <dense_element T>
struct getri_nopivot_batched {
    using value_type = T;

    in<T> a;                    ///< The matrices as getrf_nopivot_batched leaves them: n by n.
    inout<T> c;                 ///< The inverses: n by n. Not read.
    out<std::int32_t> info;     ///< One for each matrix: 0, or k if the k-th element of U's diagonal is the first zero.
    std::uint64_t n = 0;        ///< Rows and columns of A and C.
    std::uint64_t batch = 0;    ///< The number of matrices.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; zero: one matrix for all.
    std::uint64_t stride_c = 0; ///< The distance between matrices C; at least the extent of one.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.
    std::uint64_t ldc = 0;      ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept { return detail::check_lu(*this); }

    bool overwrites() const noexcept { return detail::matrix_batch{n, n, ldc, stride_c, batch, c.size()}.fills(); }

    COACCEL_PURE_OP(blas, getri_nopivot_batched, void, a, c, info, n, batch, stride_a, stride_c, lda, ldc)
};

/// The ops of this header for one element type.
template <dense_element T>
using lu_batched_for = type_list<getrf_batched<T>, getrf_nopivot_batched<T>, getrs_batched<T>, getrs_nopivot_batched<T>,
                                 getri_batched<T>, getri_nopivot_batched<T>>;

} // namespace coaccel::blas

#endif
