#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

struct level3_elementwise {
    template <class T>
    static call_needs needs(const blas::geam<T>& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), op.trans_a, op.trans_b, is_zero(op.alpha), is_zero(op.beta))};
    }

    template <class T>
    static call_needs needs(const blas::dgmm<T>& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), op.side, op.incx == 1)};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::geam<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, geam)(
            c.handle, operation<T>(op.trans_a), operation<T>(op.trans_b), size(op.m), size(op.n),
            native(factor(o, op.alpha)), native(o.data(op.a)), leading(op.a_rows(), op.a_cols(), op.lda),
            native(factor(o, op.beta)), native(o.data(op.b)), leading(op.b_rows(), op.b_cols(), op.ldb),
            native(o.data(op.c)), leading(op.m, op.n, op.ldc));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::dgmm<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, dgmm)(
            c.handle, native(op.side), size(op.m), size(op.n), native(o.data(op.a)), leading(op.m, op.n, op.lda),
            native(o.data(op.x)), increment(op.x_size(), op.incx), native(o.data(op.c)), leading(op.m, op.n, op.ldc));
    }
};

} // namespace

void add_level3_elementwise(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level3_elementwise>(table, blas::level3_elementwise_for<T>{}); });
}

} // namespace coaccel::cuda
