#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level3_batched.hpp>
#include <coaccel/ops/blas/level3_triangular.hpp>

namespace coaccel::host {
namespace {

/// op(A), with zeros in the other triangle. The copy costs little next to the work on B, and with it Eigen's kernels
/// are compiled for each triangle and side only.
template <class T>
struct triangle {
    template <class Op>
    triangle(const Op& op, const T* data)
    {
        const std::uint64_t order = op.side == blas::side::left ? op.m : op.n;
        const auto a = matrix(data, order, order, op.lda);
        dense<T> given = dense<T>::Zero(a.rows(), a.cols());
        const triangle_columns columns{op.uplo, a.cols()};
        for (Index j = 0; j < a.cols(); ++j) {
            columns.strict(given, j) = columns.strict(a, j);
            given(j, j) = op.diag == blas::diag::unit ? T(1) : a(j, j);
        }
        with_op(op.trans, given, [this](const auto& taken) { elements = taken; });
        lower = (op.uplo == blas::uplo::lower) == (op.trans == blas::transpose::no);
    }

    /// Calls `f` with Eigen's view of it.
    template <class F>
    void view(const F& f) const
    {
        if (lower)
            f(elements.template triangularView<Eigen::Lower>());
        else
            f(elements.template triangularView<Eigen::Upper>());
    }

    dense<T> elements;
    bool lower;
};

struct level3_triangular {
    template <class T>
    static void run(const blas::trmm<T>& op, const bound_op& o)
    {
        auto b = matrix(o.data(op.b), op.m, op.n, op.ldb);
        if (op.alpha == T(0)) {
            b.setZero();
            return;
        }
        const dense<T> factor = op.alpha * b;
        triangle<T>(op, o.data(op.a)).view([&](const auto& a) {
            if (op.side == blas::side::left)
                b.noalias() = a * factor;
            else
                b.noalias() = factor * a;
        });
    }

    template <class T>
    static void run(const blas::trsm<T>& op, const bound_op& o)
    {
        solve<T>(op, o.data(op.a), o.data(op.b));
    }

    template <class T>
    static void run(const blas::trsm_batched<T>& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i)
            solve<T>(op, o.data(op.a) + i * op.stride_a, o.data(op.b) + i * op.stride_b);
    }

private:
    /// One equation. Op is trsm, or trsm_batched for each member of the batch.
    template <class T, class Op>
    static void solve(const Op& op, const T* a_data, T* b_data)
    {
        auto b = matrix(b_data, op.m, op.n, op.ldb);
        if (op.alpha == T(0)) {
            b.setZero();
            return;
        }
        if (op.alpha != T(1))
            b *= op.alpha;
        triangle<T>(op, a_data).view([&](const auto& a) {
            if (op.side == blas::side::left)
                a.template solveInPlace<Eigen::OnTheLeft>(b);
            else
                a.template solveInPlace<Eigen::OnTheRight>(b);
        });
    }
};

} // namespace

void add_blas_level3_triangular(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() {
        add_ops<level3_triangular>(table, blas::level3_triangular_for<T>{});
        add_ops<level3_triangular>(table, blas::level3_batched_for<T>{});
    });
}

} // namespace coaccel::host
