#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

struct level2 {
    template <class T>
    static call_needs needs(const blas::gemv<T>& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), op.trans, op.incx == 1, op.incy == 1, is_zero(op.alpha),
                        is_zero(op.beta))};
    }

    /// ger, geru and gerc.
    template <class Op>
    static call_needs needs(const Op& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), op.incx == 1, op.incy == 1, is_zero(op.alpha))};
    }

    // Of all functions with an alpha, only this one does not read operands that are multiplied by zero.
    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemv<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, gemv)(
            c.handle, operation<T>(op.trans), size(op.m), size(op.n), native(factor(o, op.alpha)), native(o.data(op.a)),
            leading(op.m, op.n, op.lda), native(o.data(op.x)), increment(op.x_size(), op.incx),
            native(factor(o, op.beta)), native(o.data(op.y)), increment(op.y_size(), op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::ger<T>& op, const bound_op& o)
    {
        return rank_one(pick<T>(c.api.cublasSger_64, c.api.cublasDger_64), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::geru<T>& op, const bound_op& o)
    {
        return rank_one(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, geru), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gerc<T>& op, const bound_op& o)
    {
        return rank_one(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, gerc), c, op, o);
    }

private:
    template <class Function, class Op>
    static cublasStatus_t rank_one(Function function, const blas_call& c, const Op& op, const bound_op& o)
    {
        if (is_zero(op.alpha))
            return CUBLAS_STATUS_SUCCESS;
        return function(c.handle, size(op.m), size(op.n), native(factor(o, op.alpha)), native(o.data(op.x)),
                        increment(op.m, op.incx), native(o.data(op.y)), increment(op.n, op.incy), native(o.data(op.a)),
                        leading(op.m, op.n, op.lda));
    }
};

} // namespace

void add_level2(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() { add_ops<level2>(table, blas::level2_for<T>{}); });
}

} // namespace coaccel::cuda
