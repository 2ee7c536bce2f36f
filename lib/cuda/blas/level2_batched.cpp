#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

template <class T>
auto pick_batched(const cublas_api& api) noexcept
{
    if constexpr (std::same_as<T, half>)
        return api.cublasHSHgemvStridedBatched_64;
    else if constexpr (std::same_as<T, bfloat16>)
        return api.cublasTSTgemvStridedBatched_64;
    else
        return COACCEL_CUBLAS_PICK(api, T, gemvStridedBatched);
}

struct level2_batched {
    template <class T>
    static call_needs needs(const blas::gemv_strided_batched<T>& op)
    {
        return {kernels(magnitude(op.m), magnitude(op.n), magnitude(op.batch), op.trans, op.incx == 1, op.incy == 1,
                        is_zero(op.alpha), is_zero(op.beta))};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemv_strided_batched<T>& op, const bound_op& o)
    {
        const auto stride = [&op](std::uint64_t given) { return batch_stride(op.batch, given); };
        auto* const y = o.data(op.y);
        // cuBLAS reads 16-bit operands that are multiplied by zero.
        if (sizeof(T) == 2 && is_zero(op.alpha))
            return scale_vectors(c, {factor(o, op.alpha), factor(o, op.beta)}, y, op.y_size(), op.incy, op.batch,
                                 stride(op.stride_y));
        return pick_batched<T>(c.api)(c.handle, operation<T>(op.trans), size(op.m), size(op.n),
                                      native(factor(o, op.alpha)), native(o.data(op.a)), leading(op.m, op.n, op.lda),
                                      stride(op.stride_a), native(o.data(op.x)), increment(op.x_size(), op.incx),
                                      stride(op.stride_x), native(factor(o, op.beta)), native(y),
                                      increment(op.y_size(), op.incy), stride(op.stride_y), size(op.batch));
    }
};

} // namespace

void add_level2_batched(op_table& table)
{
    const auto add = [&table]<class T>() {
        add_ops<level2_batched>(table, type_list<blas::gemv_strided_batched<T>>{});
    };
    blas::detail::for_each_dense(add);
    add.template operator()<half>();
    add.template operator()<bfloat16>();
}

} // namespace coaccel::cuda
