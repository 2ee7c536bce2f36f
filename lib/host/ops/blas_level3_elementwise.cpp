#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level3_elementwise.hpp>

namespace coaccel::host {
namespace {

struct level3_elementwise {
    // A matrix multiplied by zero is not read, because it may be uninitialized.
    template <class T>
    static void run(const blas::geam<T>& op, const bound_op& o)
    {
        auto c = matrix(o.data(op.c), op.m, op.n, op.ldc);
        const auto a = matrix(o.data(op.a), op.a_rows(), op.a_cols(), op.lda);
        const auto b = matrix(o.data(op.b), op.b_rows(), op.b_cols(), op.ldb);
        if (op.alpha == T(0))
            c.setZero();
        else
            with_op(op.trans_a, a, [&](const auto& taken) { c = op.alpha * taken; });
        if (op.beta != T(0))
            with_op(op.trans_b, b, [&](const auto& taken) { c += op.beta * taken; });
    }

    template <class T>
    static void run(const blas::dgmm<T>& op, const bound_op& o)
    {
        const auto a = matrix(o.data(op.a), op.m, op.n, op.lda);
        const auto x = packed(o.data(op.x), op.x_size(), op.incx);
        auto c = matrix(o.data(op.c), op.m, op.n, op.ldc);
        if (op.side == blas::side::left)
            c = x.asDiagonal() * a;
        else
            c = a * x.asDiagonal();
    }
};

} // namespace

void add_blas_level3_elementwise(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level3_elementwise>(table, blas::level3_elementwise_for<T>{}); });
}

} // namespace coaccel::host
