#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

struct level2 {
    template <class T>
    static call_needs needs(const blas::gemv<T>& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), op.trans, op.incx == 1, op.incy == 1, op.alpha == 0,
                        op.beta == 0)};
    }

    template <class T>
    static call_needs needs(const blas::ger<T>& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), op.incx == 1, op.incy == 1, op.alpha == 0)};
    }

    // cuBLAS does not read operands that are multiplied by zero, here and in gemm with 32-bit and 64-bit elements.
    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemv<T>& op, const bound_op& o)
    {
        return pick<T>(c.api.cublasSgemv_64, c.api.cublasDgemv_64)(
            c.handle, operation(op.trans), size(op.m), size(op.n), factor(o, op.alpha), o.data(op.a),
            leading(op.m, op.n, op.lda), o.data(op.x), increment(op.x_size(), op.incx), factor(o, op.beta),
            o.data(op.y), increment(op.y_size(), op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::ger<T>& op, const bound_op& o)
    {
        if (op.alpha == T(0))
            return CUBLAS_STATUS_SUCCESS;
        return pick<T>(c.api.cublasSger_64, c.api.cublasDger_64)(
            c.handle, size(op.m), size(op.n), factor(o, op.alpha), o.data(op.x), increment(op.m, op.incx), o.data(op.y),
            increment(op.n, op.incy), o.data(op.a), leading(op.m, op.n, op.lda));
    }
};

} // namespace

void add_level2(op_table& table)
{
    add_ops<level2>(table, blas::level2_for<float>{});
    add_ops<level2>(table, blas::level2_for<double>{});
}

} // namespace coaccel::cuda
