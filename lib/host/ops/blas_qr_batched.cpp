#include "host/ops/batches.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/qr_batched.hpp>

#include <algorithm>
#include <cmath>
#include <complex>

namespace coaccel::host {
namespace {

/// The reflection of column k from the diagonal on, as in LAPACK: its vector begins with a one that is not stored.
template <class Matrix>
auto make_reflection(Matrix& a, Index k)
{
    using T = typename Matrix::Scalar;
    using real = blas::real_part<T>;
    auto below = a.col(k).tail(a.rows() - k - 1);
    const T alpha = a(k, k);
    const real norm = below.size() == 0 ? real(0) : below.stableNorm();
    if (norm == real(0) && std::imag(alpha) == real(0))
        return T(0);
    const real beta = -std::copysign(std::hypot(std::abs(alpha), norm), std::real(alpha));
    const T tau = (T(beta) - alpha) / beta;
    divide(below, alpha - T(beta));
    a(k, k) = T(beta);
    return tau;
}

/// Applies the adjoint of reflection k to the columns of C from `first` on.
template <class T, class Matrix>
void reflect(const Matrix& a, Index k, const T& tau, Matrix& c, Index first)
{
    const Index rest = a.rows() - k - 1;
    const Index count = c.cols() - first;
    if (count == 0)
        return;
    const auto v = a.col(k).tail(rest);
    auto row = c.row(k).tail(count);
    auto below = c.block(k + 1, first, rest, count);
    Eigen::Matrix<T, 1, Eigen::Dynamic> by = row;
    by.noalias() += v.adjoint() * below;
    by *= Eigen::numext::conj(tau);
    row -= by;
    below.noalias() -= v * by;
}

struct qr_batched {
    template <class T>
    static void run(const blas::geqrf_batched<T>& op, const bound_op& o)
    {
        const std::uint64_t count = std::min(op.m, op.n);
        for (std::uint64_t i = 0; i < op.batch; ++i) {
            auto a = matrix(o.data(op.a) + i * op.stride_a, op.m, op.n, op.lda);
            for (std::uint64_t k = 0; k < count; ++k) {
                const auto column = static_cast<Index>(k);
                T& tau = o.data(op.tau)[i * count + k];
                tau = make_reflection(a, column);
                reflect(a, column, tau, a, column + 1);
            }
        }
    }

    template <class T>
    static void run(const blas::gels_batched<T>& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i)
            o.data(op.info)[i] = least_squares<T>(matrix(o.data(op.a) + i * op.stride_a, op.m, op.n, op.lda),
                                                  matrix(o.data(op.c) + i * op.stride_c, op.m, op.nrhs, op.ldc));
    }

private:
    /// Returns the number of the first zero on the diagonal of R.
    template <class T>
    static std::int32_t least_squares(matrix_map<T> a, matrix_map<T> c)
    {
        std::int32_t info = 0;
        for (Index k = 0; k < a.cols(); ++k) {
            const T tau = make_reflection(a, k);
            reflect(a, k, tau, a, k + 1);
            reflect(a, k, tau, c, 0);
            if (info == 0 && a(k, k) == T(0))
                info = static_cast<std::int32_t>(k + 1);
        }
        if (info == 0)
            solve_triangle(blas::uplo::upper, blas::diag::non_unit, a, c.topRows(a.cols()));
        return info;
    }
};

} // namespace

void add_blas_qr_batched(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() { add_ops<qr_batched>(table, blas::qr_batched_for<T>{}); });
}

} // namespace coaccel::host
