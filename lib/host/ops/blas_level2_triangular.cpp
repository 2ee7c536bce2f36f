#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level2_triangular.hpp>

namespace coaccel::host {
namespace {

/// A triangular matrix that is read column by column, also if it is transposed, because columns are contiguous.
template <class T>
struct triangular_matrix {
    template <class Op>
    triangular_matrix(const Op& op, const bound_op& o)
        : a(matrix(o.data(op.a), op.n, op.n, op.lda)), columns{op.uplo, a.cols()},
          conjugate(op.trans == blas::transpose::conjugate), unit(op.diag == blas::diag::unit)
    {}

    T diagonal(Index j) const
    {
        if (unit)
            return T(1);
        return conjugate ? T(Eigen::numext::conj(a(j, j))) : T(a(j, j));
    }

    /// The product of column j of the transposed or conjugate matrix, without its diagonal, and x.
    template <class X>
    T dot(Index j, const X& x) const
    {
        const auto column = columns.strict(a, j);
        if (conjugate)
            return column.dot(columns.rows(x, j));
        return column.cwiseProduct(columns.rows(x, j)).sum();
    }

    matrix_map<const T> a;
    triangle_columns columns;
    bool conjugate;
    bool unit;
};

template <class T>
void put(T* data, std::uint64_t n, std::int64_t inc, Eigen::Matrix<T, Dynamic, 1>& x)
{
    add_to(data, n, inc, T(0), x);
}

struct level2_triangular {
    template <class T>
    static void run(const blas::trmv<T>& op, const bound_op& o)
    {
        const triangular_matrix<T> m(op, o);
        const auto x = packed<T>(o.data(op.x), op.n, op.incx);
        Eigen::Matrix<T, Dynamic, 1> product = Eigen::Matrix<T, Dynamic, 1>::Zero(x.size());
        for (Index j = 0; j < x.size(); ++j) {
            product[j] += m.diagonal(j) * x[j];
            if (op.trans == blas::transpose::no)
                m.columns.rows(product, j) += x[j] * m.columns.strict(m.a, j);
            else
                product[j] += m.dot(j, x);
        }
        put(o.data(op.x), op.n, op.incx, product);
    }

    template <class T>
    static void run(const blas::trsv<T>& op, const bound_op& o)
    {
        const triangular_matrix<T> m(op, o);
        auto x = packed<T>(o.data(op.x), op.n, op.incx);
        const bool plain = op.trans == blas::transpose::no;
        const bool forward = (op.uplo == blas::uplo::lower) == plain;
        for (Index i = 0; i < x.size(); ++i) {
            const Index j = forward ? i : x.size() - 1 - i;
            if (!plain)
                x[j] -= m.dot(j, x);
            if (!m.unit)
                x[j] /= m.diagonal(j);
            if (plain)
                m.columns.rows(x, j) -= x[j] * m.columns.strict(m.a, j);
        }
        put(o.data(op.x), op.n, op.incx, x);
    }
};

} // namespace

void add_blas_level2_triangular(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level2_triangular>(table, blas::level2_triangular_for<T>{}); });
}

} // namespace coaccel::host
