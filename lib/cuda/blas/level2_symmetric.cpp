#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

/// symv and hemv.
template <class Function, class Op>
cublasStatus_t vector_product(Function function, const blas_call& c, const Op& op, const bound_op& o)
{
    if (is_zero(op.alpha))
        return scale_vectors(c, {factor(o, op.alpha), factor(o, op.beta)}, o.data(op.y), op.n, op.incy);
    return function(c.handle, native(op.uplo), size(op.n), native(factor(o, op.alpha)), native(o.data(op.a)),
                    leading(op.n, op.n, op.lda), native(o.data(op.x)), increment(op.n, op.incx),
                    native(factor(o, op.beta)), native(o.data(op.y)), increment(op.n, op.incy));
}

/// Updates of A, by one vector or two.
template <class Function, class Op>
cublasStatus_t vector_update(Function function, const blas_call& c, const Op& op, const bound_op& o)
{
    if (is_zero(op.alpha))
        return CUBLAS_STATUS_SUCCESS;
    const auto* const alpha = native(factor(o, op.alpha));
    const auto lda = leading(op.n, op.n, op.lda);
    if constexpr (requires { op.y; })
        return function(c.handle, native(op.uplo), size(op.n), alpha, native(o.data(op.x)), increment(op.n, op.incx),
                        native(o.data(op.y)), increment(op.n, op.incy), native(o.data(op.a)), lda);
    else
        return function(c.handle, native(op.uplo), size(op.n), alpha, native(o.data(op.x)), increment(op.n, op.incx),
                        native(o.data(op.a)), lda);
}

struct level2_symmetric {
    template <class Op>
    static call_needs needs(const Op& op)
    {
        bool y_packed = true, overwrites = false;
        if constexpr (requires { op.y; })
            y_packed = op.incy == 1;
        if constexpr (requires { op.beta; })
            overwrites = is_zero(op.beta);
        return {kernels(magnitude(op.n), op.uplo, op.incx == 1, y_packed, is_zero(op.alpha), overwrites)};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::symv<T>& op, const bound_op& o)
    {
        return vector_product(COACCEL_CUBLAS_PICK(c.api, T, symv), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::hemv<T>& op, const bound_op& o)
    {
        return vector_product(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, hemv), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::syr<T>& op, const bound_op& o)
    {
        return vector_update(COACCEL_CUBLAS_PICK(c.api, T, syr), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::her<T>& op, const bound_op& o)
    {
        return vector_update(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, her), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::syr2<T>& op, const bound_op& o)
    {
        return vector_update(COACCEL_CUBLAS_PICK(c.api, T, syr2), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::her2<T>& op, const bound_op& o)
    {
        return vector_update(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, her2), c, op, o);
    }
};

} // namespace

void add_level2_symmetric(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level2_symmetric>(table, blas::level2_symmetric_for<T>{}); });
}

} // namespace coaccel::cuda
