#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level2_symmetric.hpp>

namespace coaccel::host {
namespace {

/// With a symmetric matrix there are no conjugates.
struct symmetric {
    template <class T>
    static T turned(const T& value)
    {
        return value;
    }

    template <class A, class X>
    static auto dot(const A& a, const X& x)
    {
        return a.cwiseProduct(x).sum();
    }
};

struct hermitian {
    template <class T>
    static T turned(const T& value)
    {
        return Eigen::numext::conj(value);
    }

    template <class A, class X>
    static auto dot(const A& a, const X& x)
    {
        return a.dot(x);
    }
};

/// The diagonal element of a matrix of this kind.
template <class Kind, class T>
T diagonal(const T& value)
{
    if constexpr (std::same_as<Kind, hermitian>)
        return T(Eigen::numext::real(value));
    else
        return value;
}

/// symv and hemv. Each column of the triangle is also a row of the other one, so A is read once.
template <class T, class Kind, class Op>
void product(const Op& op, const bound_op& o)
{
    const auto a = matrix(o.data(op.a), op.n, op.n, op.lda);
    const triangle_columns columns{op.uplo, a.cols()};
    Eigen::Matrix<T, Dynamic, 1> sum = Eigen::Matrix<T, Dynamic, 1>::Zero(a.rows());
    // An operand multiplied by zero is not read, because it may be uninitialized.
    if (op.alpha != T(0)) {
        const Eigen::Matrix<T, Dynamic, 1> x = op.alpha * packed(o.data(op.x), op.n, op.incx);
        for (Index j = 0; j < a.cols(); ++j) {
            const auto column = columns.strict(a, j);
            columns.rows(sum, j) += x[j] * column;
            sum[j] += diagonal<Kind>(T(a(j, j))) * x[j] + Kind::dot(column, columns.rows(x, j));
        }
    }
    add_to(o.data(op.y), op.n, op.incy, op.beta, sum);
}

/// The updates. `column(columns, a, j)` updates column j of the triangle.
template <class T, class Kind, class Op, class Column>
void update(const Op& op, const bound_op& o, Column column)
{
    if (op.alpha == decltype(op.alpha)(0))
        return;
    auto a = matrix(o.data(op.a), op.n, op.n, op.lda);
    const triangle_columns columns{op.uplo, a.cols()};
    for (Index j = 0; j < a.cols(); ++j) {
        column(columns, a, j);
        a(j, j) = diagonal<Kind>(T(a(j, j)));
    }
}

template <class T, class Kind, class Op>
void update_by_one(const Op& op, const bound_op& o)
{
    const auto x = packed(o.data(op.x), op.n, op.incx);
    update<T, Kind>(op, o, [&](const triangle_columns& columns, auto& a, Index j) {
        const T by = T(op.alpha) * Kind::turned(x[j]);
        columns.strict(a, j) += by * columns.rows(x, j);
        a(j, j) += by * x[j];
    });
}

template <class T, class Kind, class Op>
void update_by_two(const Op& op, const bound_op& o)
{
    const auto x = packed(o.data(op.x), op.n, op.incx);
    const auto y = packed(o.data(op.y), op.n, op.incy);
    update<T, Kind>(op, o, [&](const triangle_columns& columns, auto& a, Index j) {
        const T by_y = op.alpha * Kind::turned(y[j]);
        const T by_x = Kind::turned(op.alpha) * Kind::turned(x[j]);
        columns.strict(a, j) += by_y * columns.rows(x, j) + by_x * columns.rows(y, j);
        a(j, j) += by_y * x[j] + by_x * y[j];
    });
}

struct level2_symmetric {
    template <class T>
    static void run(const blas::symv<T>& op, const bound_op& o)
    {
        product<T, symmetric>(op, o);
    }

    template <class T>
    static void run(const blas::hemv<T>& op, const bound_op& o)
    {
        product<T, hermitian>(op, o);
    }

    template <class T>
    static void run(const blas::syr<T>& op, const bound_op& o)
    {
        update_by_one<T, symmetric>(op, o);
    }

    template <class T>
    static void run(const blas::her<T>& op, const bound_op& o)
    {
        update_by_one<T, hermitian>(op, o);
    }

    template <class T>
    static void run(const blas::syr2<T>& op, const bound_op& o)
    {
        update_by_two<T, symmetric>(op, o);
    }

    template <class T>
    static void run(const blas::her2<T>& op, const bound_op& o)
    {
        update_by_two<T, hermitian>(op, o);
    }
};

} // namespace

void add_blas_level2_symmetric(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level2_symmetric>(table, blas::level2_symmetric_for<T>{}); });
}

} // namespace coaccel::host
