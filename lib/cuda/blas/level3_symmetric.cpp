#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

/// symm and hemm.
template <class Function, class Op>
cublasStatus_t matrix_product(Function function, const blas_call& c, const Op& op, const bound_op& o)
{
    if (is_zero(op.alpha))
        return scale<typename Op::value_type>(c, {factor(o, op.alpha), factor(o, op.beta)},
                                              {o.data(op.c), op.m, op.n, leading(op.m, op.n, op.ldc), 0, 1});
    const std::uint64_t order = op.side == blas::side::left ? op.m : op.n;
    return function(c.handle, native(op.side), native(op.uplo), size(op.m), size(op.n), native(factor(o, op.alpha)),
                    native(o.data(op.a)), leading(order, order, op.lda), native(o.data(op.b)),
                    leading(op.m, op.n, op.ldb), native(factor(o, op.beta)), native(o.data(op.c)),
                    leading(op.m, op.n, op.ldc));
}

/// The leading dimension of a factor of a rank update.
template <class Op>
std::int64_t factor_leading(const Op& op, std::uint64_t ld) noexcept
{
    return op.trans == blas::transpose::no ? leading(op.n, op.k, ld) : leading(op.k, op.n, ld);
}

/// Updates of C, with one factor or two.
template <class Function, class Op>
cublasStatus_t matrix_update(Function function, const blas_call& c, const Op& op, const bound_op& o)
{
    const auto trans = operation<typename Op::value_type>(op.trans);
    const auto* const alpha = native(factor(o, op.alpha));
    const auto* const beta = native(factor(o, op.beta));
    const auto ldc = leading(op.n, op.n, op.ldc);
    // cuBLAS would read factors that are multiplied by zero.
    const std::int64_t k = is_zero(op.alpha) ? 0 : size(op.k);
    const auto lda = factor_leading(op, op.lda);
    if constexpr (requires { op.b; })
        return function(c.handle, native(op.uplo), trans, size(op.n), k, alpha, native(o.data(op.a)), lda,
                        native(o.data(op.b)), factor_leading(op, op.ldb), beta, native(o.data(op.c)), ldc);
    else
        return function(c.handle, native(op.uplo), trans, size(op.n), k, alpha, native(o.data(op.a)), lda, beta,
                        native(o.data(op.c)), ldc);
}

struct level3_symmetric {
    template <class Op>
    static call_needs needs(const Op& op)
    {
        if constexpr (requires { op.side; })
            return {kernels(magnitude(op.m), magnitude(op.n), op.side, op.uplo, is_zero(op.alpha), is_zero(op.beta),
                            alignment(op.lda, op.side == blas::side::left ? op.m : op.n), alignment(op.ldb, op.m),
                            alignment(op.ldc, op.m))};
        else
            return {kernels(magnitude(op.n), magnitude(op.k), op.uplo, op.trans, is_zero(op.alpha), is_zero(op.beta),
                            alignment(op.lda, op.trans == blas::transpose::no ? op.n : op.k), alignment(op.ldc, op.n))};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::symm<T>& op, const bound_op& o)
    {
        return matrix_product(COACCEL_CUBLAS_PICK(c.api, T, symm), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::hemm<T>& op, const bound_op& o)
    {
        return matrix_product(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, hemm), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::syrk<T>& op, const bound_op& o)
    {
        return matrix_update(COACCEL_CUBLAS_PICK(c.api, T, syrk), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::herk<T>& op, const bound_op& o)
    {
        return matrix_update(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, herk), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::syr2k<T>& op, const bound_op& o)
    {
        return matrix_update(COACCEL_CUBLAS_PICK(c.api, T, syr2k), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::her2k<T>& op, const bound_op& o)
    {
        return matrix_update(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, her2k), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::syrkx<T>& op, const bound_op& o)
    {
        return matrix_update(COACCEL_CUBLAS_PICK(c.api, T, syrkx), c, op, o);
    }
};

} // namespace

void add_level3_symmetric(op_table& table)
{
    blas::detail::for_each_dense(
        [&table]<class T>() { add_ops<level3_symmetric>(table, blas::level3_symmetric_for<T>{}); });
}

} // namespace coaccel::cuda
