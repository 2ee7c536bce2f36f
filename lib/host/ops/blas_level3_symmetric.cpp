#include "host/ops/libraries.hpp"
#include "host/ops/products.hpp"

#include <coaccel/ops/blas/level3_symmetric.hpp>

namespace coaccel::host {
namespace {

enum class symmetry { symmetric, hermitian };

/// The whole matrix of which one triangle is given.
template <class T>
dense<T> completed(const matrix_map<const T>& a, blas::uplo uplo, symmetry kind)
{
    const triangle_columns columns{uplo, a.rows()};
    dense<T> full(a.rows(), a.rows());
    for (Index j = 0; j < a.rows(); ++j) {
        const auto column = columns.strict(a, j);
        columns.strict(full, j) = column;
        auto row = full.row(j).transpose();
        if (kind == symmetry::symmetric)
            columns.rows(row, j) = column;
        else
            columns.rows(row, j) = column.conjugate();
        full(j, j) = kind == symmetry::symmetric ? T(a(j, j)) : T(Eigen::numext::real(a(j, j)));
    }
    return full;
}

/// symm and hemm. The completed matrix costs little next to the product, and the kernels of general products are the
/// fastest.
template <class T, class Op>
void product(const Op& op, const bound_op& o, symmetry kind)
{
    const bool left = op.side == blas::side::left;
    const std::uint64_t order = left ? op.m : op.n;
    const auto b = matrix(o.data(op.b), op.m, op.n, op.ldb);
    const auto c = matrix(o.data(op.c), op.m, op.n, op.ldc);
    constexpr auto as_is = blas::transpose::no;
    // Not read if it is multiplied by zero.
    if (op.alpha == T(0))
        return multiply<T>(as_is, as_is, b, b, c, op.alpha, op.beta);
    const auto full = completed<T>(matrix(o.data(op.a), order, order, op.lda), op.uplo, kind);
    if (left)
        multiply<T>(as_is, as_is, whole(full), b, c, op.alpha, op.beta);
    else
        multiply<T>(as_is, as_is, b, whole(full), c, op.alpha, op.beta);
}

/// Multiplies one triangle by beta.
template <class Matrix, class Beta>
void scale(Matrix& c, blas::uplo uplo, Beta beta)
{
    const triangle_columns columns{uplo, c.cols()};
    for (Index j = 0; j < c.cols(); ++j) {
        auto column = columns.whole(c, j);
        if (beta == Beta(0))
            column.setZero();
        else if (beta != Beta(1))
            column *= beta;
    }
}

/// Adds one triangle of alpha * left * right.
template <class Matrix, class T>
void add(Matrix& c, blas::uplo uplo, const dense<T>& left, const dense<T>& right, T alpha)
{
    if (uplo == blas::uplo::lower)
        c.template triangularView<Eigen::Lower>() += alpha * left * right;
    else
        c.template triangularView<Eigen::Upper>() += alpha * left * right;
}

/// op(a), an n by k matrix.
template <class T, class Op>
dense<T> factor(const Op& op, const T* a, std::uint64_t ld)
{
    const bool plain = op.trans == blas::transpose::no;
    dense<T> taken;
    with_op(op.trans, matrix(a, plain ? op.n : op.k, plain ? op.k : op.n, ld),
            [&taken](const auto& given) { taken = given; });
    return taken;
}

template <class T>
dense<T> turned(const dense<T>& m, symmetry kind)
{
    return kind == symmetry::symmetric ? dense<T>(m.transpose()) : dense<T>(m.adjoint());
}

enum class terms { one_factor, two_factors, both_orders };

template <class T, terms Terms, class Op>
void update(const Op& op, const bound_op& o, symmetry kind)
{
    auto c = matrix(o.data(op.c), op.n, op.n, op.ldc);
    scale(c, op.uplo, op.beta);
    const T alpha = op.alpha;
    if (alpha != T(0)) {
        const auto a = factor<T>(op, o.data(op.a), op.lda);
        if constexpr (Terms == terms::one_factor) {
            add(c, op.uplo, a, turned(a, kind), alpha);
        } else {
            const auto b = factor<T>(op, o.data(op.b), op.ldb);
            add(c, op.uplo, a, turned(b, kind), alpha);
            if constexpr (Terms == terms::both_orders)
                add(c, op.uplo, b, turned(a, kind),
                    kind == symmetry::hermitian ? T(Eigen::numext::conj(alpha)) : alpha);
        }
    }
    if (kind == symmetry::hermitian)
        for (Index j = 0; j < c.cols(); ++j)
            c(j, j) = Eigen::numext::real(c(j, j));
}

struct level3_symmetric {
    template <class T>
    static void run(const blas::symm<T>& op, const bound_op& o)
    {
        product<T>(op, o, symmetry::symmetric);
    }

    template <class T>
    static void run(const blas::hemm<T>& op, const bound_op& o)
    {
        product<T>(op, o, symmetry::hermitian);
    }

    template <class T>
    static void run(const blas::syrk<T>& op, const bound_op& o)
    {
        update<T, terms::one_factor>(op, o, symmetry::symmetric);
    }

    template <class T>
    static void run(const blas::herk<T>& op, const bound_op& o)
    {
        update<T, terms::one_factor>(op, o, symmetry::hermitian);
    }

    template <class T>
    static void run(const blas::syr2k<T>& op, const bound_op& o)
    {
        update<T, terms::both_orders>(op, o, symmetry::symmetric);
    }

    template <class T>
    static void run(const blas::her2k<T>& op, const bound_op& o)
    {
        update<T, terms::both_orders>(op, o, symmetry::hermitian);
    }

    template <class T>
    static void run(const blas::syrkx<T>& op, const bound_op& o)
    {
        update<T, terms::two_factors>(op, o, symmetry::symmetric);
    }
};

} // namespace

void add_blas_level3_symmetric(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level3_symmetric>(table, blas::level3_symmetric_for<T>{}); });
}

} // namespace coaccel::host
