#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

template <class Function, class Op>
cublasStatus_t apply(Function function, const blas_call& c, const Op& op, const bound_op& o)
{
    return function(c.handle, native(op.uplo), operation<typename Op::value_type>(op.trans), native(op.diag),
                    size(op.n), native(o.data(op.a)), leading(op.n, op.n, op.lda), native(o.data(op.x)),
                    increment(op.n, op.incx));
}

struct level2_triangular {
    template <class Op>
    static call_needs needs(const Op& op)
    {
        return {kernels(magnitude(op.n), op.uplo, op.trans, op.diag, op.incx == 1)};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::trmv<T>& op, const bound_op& o)
    {
        return apply(COACCEL_CUBLAS_PICK(c.api, T, trmv), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::trsv<T>& op, const bound_op& o)
    {
        return apply(COACCEL_CUBLAS_PICK(c.api, T, trsv), c, op, o);
    }
};

} // namespace

void add_level2_triangular(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level2_triangular>(table, blas::level2_triangular_for<T>{}); });
}

} // namespace coaccel::cuda
