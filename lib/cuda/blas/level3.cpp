#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

template <class T>
constexpr cudaDataType_t data_type() noexcept
{
    if constexpr (std::same_as<T, float>)
        return CUDA_R_32F;
    else if constexpr (std::same_as<T, double>)
        return CUDA_R_64F;
    else if constexpr (std::same_as<T, half>)
        return CUDA_R_16F;
    else
        return CUDA_R_16BF;
}

template <class T>
constexpr cublasComputeType_t compute_type(blas::math m) noexcept
{
    if constexpr (std::same_as<T, double>)
        return CUBLAS_COMPUTE_64F;
    return std::same_as<T, float> && m == blas::math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// A and B as passed to cuBLAS.
struct factors {
    const void* a;
    const void* b;
    cublasOperation_t trans_a, trans_b;
    std::int64_t k, lda, ldb;
};

template <class Op>
factors factors_of(const blas_call& c, const Op& op, const bound_op& o) noexcept
{
    if (c.scratch) {
        const auto* zeros = static_cast<const typename Op::value_type*>(c.scratch);
        return {zeros, zeros + op.m, CUBLAS_OP_N, CUBLAS_OP_N, 1, size(op.m), 1};
    }
    const auto s = op.shape();
    return {o.data(op.a),
            o.data(op.b),
            operation(op.trans_a),
            operation(op.trans_b),
            size(op.k),
            leading(s.a_rows(), s.a_cols(), op.lda),
            leading(s.b_rows(), s.b_cols(), op.ldb)};
}

/// The alignment of a leading dimension, as far as it matters to the choice of kernels.
constexpr std::uint64_t alignment(std::uint64_t ld, std::uint64_t rows) noexcept
{
    const std::uint64_t step = ld != 0 ? ld : rows;
    return step & -step & 31;
}

// With 16-bit elements cuBLAS reads A and B even if alpha is zero, and NaN would propagate to C. It gets a product of
// zero vectors in scratch memory instead.
template <class Op>
call_needs needs_of_product(const Op& op, std::uint64_t batch)
{
    using T = typename Op::value_type;
    const auto s = op.shape();
    return {kernels(magnitude(op.m), magnitude(op.n), magnitude(op.k), magnitude(batch), op.trans_a, op.trans_b,
                    op.alpha == 0, op.beta == 0, alignment(op.lda, s.a_rows()), alignment(op.ldb, s.b_rows()),
                    alignment(op.ldc, op.m), op.math),
            !blas::real<T> && op.alpha == 0 ? (op.m + op.n) * sizeof(T) : 0};
}

struct level3 {
    template <class T>
    static call_needs needs(const blas::gemm<T>& op)
    {
        return needs_of_product(op, 1);
    }

    template <class T>
    static call_needs needs(const blas::gemm_strided_batched<T>& op)
    {
        return needs_of_product(op, op.batch);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm<T>& op, const bound_op& o)
    {
        const auto f = factors_of(c, op, o);
        constexpr auto type = data_type<T>();
        return c.api.cublasGemmEx_64(c.handle, f.trans_a, f.trans_b, size(op.m), size(op.n), f.k, factor(o, op.alpha),
                                     f.a, type, f.lda, f.b, type, f.ldb, factor(o, op.beta), o.data(op.c), type,
                                     leading(op.m, op.n, op.ldc), compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_strided_batched<T>& op, const bound_op& o)
    {
        const auto f = factors_of(c, op, o);
        constexpr auto type = data_type<T>();
        // With a single matrix the stride has no meaning and may exceed any memory.
        const auto stride = [&op](std::uint64_t given) { return op.batch == 1 ? 0 : size(given); };
        return c.api.cublasGemmStridedBatchedEx_64(
            c.handle, f.trans_a, f.trans_b, size(op.m), size(op.n), f.k, factor(o, op.alpha), f.a, type, f.lda,
            c.scratch ? 0 : stride(op.stride_a), f.b, type, f.ldb, c.scratch ? 0 : stride(op.stride_b),
            factor(o, op.beta), o.data(op.c), type, leading(op.m, op.n, op.ldc), stride(op.stride_c), size(op.batch),
            compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
    }
};

template <class... Ts>
void add_for(op_table& table)
{
    (add_ops<level3>(table, blas::level3_for<Ts>{}), ...);
}

} // namespace

void add_level3(op_table& table)
{
    add_for<float, double, half, bfloat16>(table);
}

} // namespace coaccel::cuda
