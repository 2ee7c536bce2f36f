#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

struct level3_triangular {
    template <class Op>
    static std::uint64_t order(const Op& op) noexcept
    {
        return op.side == blas::side::left ? op.m : op.n;
    }

    template <class Op>
    static std::uint64_t key(const Op& op) noexcept
    {
        return kernels(magnitude(op.m), magnitude(op.n), op.side, op.uplo, op.trans, op.diag, is_zero(op.alpha),
                       alignment(op.lda, order(op)), alignment(op.ldb, op.m));
    }

    template <class T>
    static call_needs needs(const blas::trmm<T>& op)
    {
        return {.kernels = key(op)};
    }

    template <class T>
    static call_needs needs(const blas::trsm<T>& op)
    {
        return {.kernels = key(op), .launches = triangular_launches(order(op), 1)};
    }

    template <class T>
    static call_needs needs(const blas::trsm_batched<T>& op)
    {
        return {.kernels = kernels(key(op), magnitude(op.batch)),
                .addresses = is_zero(op.alpha) ? 0 : 2 * op.batch,
                .launches = triangular_launches(op.order(), op.batch)};
    }

    // cuBLAS has a destination of its own, which may be B.
    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::trmm<T>& op, const bound_op& o)
    {
        const auto ldb = leading(op.m, op.n, op.ldb);
        return COACCEL_CUBLAS_PICK(c.api, T, trmm)(c.handle, native(op.side), native(op.uplo), operation<T>(op.trans),
                                                   native(op.diag), size(op.m), size(op.n), native(factor(o, op.alpha)),
                                                   native(o.data(op.a)), leading(order(op), order(op), op.lda),
                                                   native(o.data(op.b)), ldb, native(o.data(op.b)), ldb);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::trsm<T>& op, const bound_op& o)
    {
        if (is_zero(op.alpha))
            return scale<T>(c, {factor(o, op.alpha), factor(o, op.alpha)},
                            {o.data(op.b), op.m, op.n, leading(op.m, op.n, op.ldb), 0, 1});
        return COACCEL_CUBLAS_PICK(c.api, T, trsm)(c.handle, native(op.side), native(op.uplo), operation<T>(op.trans),
                                                   native(op.diag), size(op.m), size(op.n), native(factor(o, op.alpha)),
                                                   native(o.data(op.a)), leading(order(op), order(op), op.lda),
                                                   native(o.data(op.b)), leading(op.m, op.n, op.ldb));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::trsm_batched<T>& op, const bound_op& o)
    {
        if (is_zero(op.alpha))
            return scale<T>(
                c, {factor(o, op.alpha), factor(o, op.alpha)},
                {o.data(op.b), op.m, op.n, leading(op.m, op.n, op.ldb), batch_stride(op.batch, op.stride_b), op.batch});
        return with_tables<T>(
            c, {addresses(o.data(op.a), op.batch, op.stride_a), addresses(o.data(op.b), op.batch, op.stride_b)},
            op.batch, [&](auto* a, auto* b) {
                return COACCEL_CUBLAS_PICK(c.api, T, trsmBatched)(
                    c.handle, native(op.side), native(op.uplo), operation<T>(op.trans), native(op.diag), size(op.m),
                    size(op.n), native(factor(o, op.alpha)), a, leading(op.order(), op.order(), op.lda), b,
                    leading(op.m, op.n, op.ldb), size(op.batch));
            });
    }
};

} // namespace

void add_level3_triangular(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() {
        add_ops<level3_triangular>(table, blas::level3_triangular_for<T>{});
        add_ops<level3_triangular>(table, blas::level3_batched_for<T>{});
    });
}

} // namespace coaccel::cuda
