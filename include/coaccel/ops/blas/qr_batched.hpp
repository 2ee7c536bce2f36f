#ifndef COACCEL_OPS_BLAS_QR_BATCHED_HPP
#define COACCEL_OPS_BLAS_QR_BATCHED_HPP

#include <coaccel/ops/blas/batches.hpp>

#include <algorithm>

// QR factorizations of many small matrices, and least squares with them. On a GPU one warp computes one matrix, so the
// ops are for up to a few hundred rows and columns.
namespace coaccel::blas {

/// A = Q * R for each of `batch` matrices, with Q unitary and R upper triangular.
///
/// Q is the product of reflections H(0) * H(1) * ..., one for each column of A or, if they are fewer, each row:
/// H(k) = I - tau[k] * v * v^H, where v has k zeros, a one, and then the elements below the diagonal of A in column k,
/// as in LAPACK.
///
/// On a GPU one warp computes one matrix: it is for up to a few hundred rows and columns. Matrices with thousands of
/// them take seconds, which count towards `context.hang_timeout`.
template <dense_element T>
struct geqrf_batched {
    using value_type = T;

    inout<T> a;                 ///< The matrices: m by n, replaced by R and, below its diagonal, the reflections.
    out<T> tau;                 ///< The factors of the reflections: min(m, n) for each matrix.
    std::uint64_t m = 0;        ///< Rows of a matrix.
    std::uint64_t n = 0;        ///< Columns of a matrix.
    std::uint64_t batch = 0;    ///< The number of matrices.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; at least the extent of one.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.

    error_code check() const noexcept
    {
        const detail::matrix_batch matrices{m, n, lda, stride_a, batch, a.size()};
        return detail::first_error({
            detail::check_size(name, "m", m),
            detail::check_size(name, "n", n),
            detail::check_size(name, "batch", batch),
            detail::check_int_span(name, detail::a_names, matrices),
            matrices.check_apart(name, detail::a_batch),
            detail::check_packed(name, "tau", std::min(m, n), batch, tau.size()),
        });
    }

    COACCEL_PURE_OP(blas, geqrf_batched, void, a, tau, m, n, batch, stride_a, lda)
};

/// The least squares solution of A * X = C for each of `batch` matrices A with at least as many rows as columns: the X
/// for which the sum of the squares of A * X - C is least in each column.
///
/// The columns of A must be linearly independent. If they are not, and rounding leaves a zero on the diagonal of R, the
/// X of this matrix is unspecified. `info` is read like any buffer, with `async_download` after the op.
template <dense_element T>
struct gels_batched {
    using value_type = T;

    inout<T> a;              ///< The matrices: m by n, replaced by their factorization as in geqrf_batched.
    inout<T> c;              ///< The right-hand sides: m by nrhs. X replaces the first n rows; the others are changed.
    out<std::int32_t> info;  ///< One for each matrix: 0, or k if the k-th element of R's diagonal is the first zero.
    std::uint64_t m = 0;     ///< Rows of A and C.
    std::uint64_t n = 0;     ///< Columns of A; at most m.
    std::uint64_t nrhs = 0;  ///< Columns of C.
    std::uint64_t batch = 0; ///< The number of matrices.
    std::uint64_t stride_a = 0; ///< The distance between matrices A; at least the extent of one.
    std::uint64_t stride_c = 0; ///< The distance between matrices C; at least the extent of one.
    std::uint64_t lda = 0;      ///< The distance between columns of A; zero: packed.
    std::uint64_t ldc = 0;      ///< The distance between columns of C; zero: packed.

    error_code check() const noexcept
    {
        const detail::matrix_batch matrices{m, n, lda, stride_a, batch, a.size()};
        const detail::matrix_batch right{m, nrhs, ldc, stride_c, batch, c.size()};
        return detail::first_error({
            detail::check_size(name, "m", m),
            detail::check_size(name, "n", n),
            m < n ? detail::op_error(errc::invalid_argument, name, {"m is ", m, ", less than n, which is ", n})
                  : error_code{},
            detail::check_size(name, "nrhs", nrhs),
            detail::check_size(name, "batch", batch),
            detail::check_int_span(name, detail::a_names, matrices),
            detail::check_int_span(name, detail::c_names, right),
            matrices.check_apart(name, detail::a_batch),
            right.check_apart(name, detail::c_batch),
            detail::check_packed(name, "info", 1, batch, info.size()),
        });
    }

    COACCEL_PURE_OP(blas, gels_batched, void, a, c, info, m, n, nrhs, batch, stride_a, stride_c, lda, ldc)
};

/// The ops of this header for one element type.
template <dense_element T>
using qr_batched_for = type_list<geqrf_batched<T>, gels_batched<T>>;

} // namespace coaccel::blas

#endif
