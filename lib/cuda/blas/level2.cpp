#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

// cuBLAS does not read operands that are multiplied by zero, here and in gemm with 32-bit and 64-bit elements.
template <class T>
cublasStatus_t gemv(const blas_call& c, const blas::gemv<T>& op, const bound_op& o)
{
    return pick<T>(c.api.cublasSgemv_64, c.api.cublasDgemv_64)(
        c.handle, operation(op.trans), size(op.m), size(op.n), &op.alpha, o.data(op.a), leading(op.m, op.n, op.lda),
        o.data(op.x), increment(op.x_size(), op.incx), &op.beta, o.data(op.y), increment(op.y_size(), op.incy));
}

template <class T>
cublasStatus_t ger(const blas_call& c, const blas::ger<T>& op, const bound_op& o)
{
    if (op.alpha == T(0))
        return CUBLAS_STATUS_SUCCESS;
    return pick<T>(c.api.cublasSger_64, c.api.cublasDger_64)(
        c.handle, size(op.m), size(op.n), &op.alpha, o.data(op.x), increment(op.m, op.incx), o.data(op.y),
        increment(op.n, op.incy), o.data(op.a), leading(op.m, op.n, op.lda));
}

template <class T>
void add_for(op_table& table)
{
    table.add<blas::gemv<T>, run_blas<blas::gemv<T>, gemv<T>>>();
    table.add<blas::ger<T>, run_blas<blas::ger<T>, ger<T>>>();
}

} // namespace

void add_blas_level2(op_table& table)
{
    add_for<float>(table);
    add_for<double>(table);
}

} // namespace coaccel::cuda
