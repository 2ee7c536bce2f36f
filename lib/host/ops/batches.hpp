#ifndef COACCEL_HOST_OPS_BATCHES_HPP
#define COACCEL_HOST_OPS_BATCHES_HPP

#include "host/ops/eigen.hpp"

// Shared by the factorizations of batches, whose matrices are small.
namespace coaccel::host {

/// Divides a column. Eigen divides complex columns by squares of magnitudes, which overflow or underflow.
template <class Column, class T>
void divide(Column&& column, const T by)
{
    for (Index i = 0; i < column.size(); ++i)
        column(i) /= by;
}

/// Replaces the columns of B by the solutions of A * X = B, with A a triangular matrix with as many rows.
template <class Matrix, class Right>
void solve_triangle(blas::uplo u, blas::diag d, const Matrix& a, Right&& b)
{
    const Index n = a.cols();
    const triangle_columns columns{u, n};
    for (Index c = 0; c < b.cols(); ++c) {
        auto x = b.col(c);
        for (Index i = 0; i < n; ++i) {
            const Index k = u == blas::uplo::lower ? i : n - 1 - i;
            if (d == blas::diag::non_unit)
                x(k) /= a(k, k);
            columns.rows(x, k) -= x(k) * columns.strict(a, k);
        }
    }
}

} // namespace coaccel::host

#endif
