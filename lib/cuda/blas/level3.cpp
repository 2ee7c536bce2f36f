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
    else if constexpr (std::same_as<T, std::complex<float>>)
        return CUDA_C_32F;
    else if constexpr (std::same_as<T, std::complex<double>>)
        return CUDA_C_64F;
    else if constexpr (std::same_as<T, std::int8_t>)
        return CUDA_R_8I;
    else if constexpr (std::same_as<T, std::int32_t>)
        return CUDA_R_32I;
    else if constexpr (std::same_as<T, half>)
        return CUDA_R_16F;
    else
        return CUDA_R_16BF;
}

template <class T>
constexpr cublasComputeType_t compute_type(blas::math m) noexcept
{
    if constexpr (std::same_as<T, double> || std::same_as<T, std::complex<double>>)
        return m == blas::math::pedantic ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_64F;
    if constexpr (std::same_as<T, std::int8_t>)
        return m == blas::math::pedantic ? CUBLAS_COMPUTE_32I_PEDANTIC : CUBLAS_COMPUTE_32I;
    if (m == blas::math::pedantic)
        return CUBLAS_COMPUTE_32F_PEDANTIC;
    return blas::dense_element<T> && m == blas::math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
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
            operation<typename Op::value_type>(op.trans_a),
            operation<typename Op::value_type>(op.trans_b),
            size(op.k),
            leading(s.a_rows(), s.a_cols(), op.lda),
            leading(s.b_rows(), s.b_cols(), op.ldb)};
}

// With 16-bit elements cuBLAS reads A and B even if alpha is zero, and NaN would propagate to C. It gets a product of
// zero vectors in scratch memory instead.
template <class Op>
call_needs needs_of_product(const Op& op, std::uint64_t batch)
{
    using T = typename Op::value_type;
    const auto s = op.shape();
    return {kernels(magnitude(op.m), magnitude(op.n), magnitude(op.k), magnitude(batch), op.trans_a, op.trans_b,
                    is_zero(op.alpha), is_zero(op.beta), alignment(op.lda, s.a_rows()), alignment(op.ldb, s.b_rows()),
                    alignment(op.ldc, op.m), op.math),
            op.obstacle() == capture_obstacle::scratch_memory ? (op.m + op.n) * sizeof(T) : 0};
}

struct level3 {
    template <class T>
    static call_needs needs(const blas::gemm<T>& op)
    {
        return needs_of_product(op, 1);
    }

    template <class T>
    static call_needs needs(const blas::gemm_ex<T>& op)
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
        return product(c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_ex<T>& op, const bound_op& o)
    {
        return product(c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_strided_batched<T>& op, const bound_op& o)
    {
        const auto f = factors_of(c, op, o);
        constexpr auto type = data_type<T>();
        const auto stride = [&op](std::uint64_t given) { return batch_stride(op.batch, given); };
        return c.api.cublasGemmStridedBatchedEx_64(
            c.handle, f.trans_a, f.trans_b, size(op.m), size(op.n), f.k, factor(o, op.alpha), f.a, type, f.lda,
            c.scratch ? 0 : stride(op.stride_a), f.b, type, f.ldb, c.scratch ? 0 : stride(op.stride_b),
            factor(o, op.beta), o.data(op.c), type, leading(op.m, op.n, op.ldc), stride(op.stride_c), size(op.batch),
            compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
    }

private:
    /// gemm and gemm_ex.
    template <class Op>
    static cublasStatus_t product(const blas_call& c, const Op& op, const bound_op& o)
    {
        using T = typename Op::value_type;
        const auto f = factors_of(c, op, o);
        auto* const result = o.data(op.c);
        return c.api.cublasGemmEx_64(c.handle, f.trans_a, f.trans_b, size(op.m), size(op.n), f.k, factor(o, op.alpha),
                                     f.a, data_type<T>(), f.lda, f.b, data_type<T>(), f.ldb, factor(o, op.beta), result,
                                     data_type<std::remove_cvref_t<decltype(*result)>>(), leading(op.m, op.n, op.ldc),
                                     compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
    }
};

} // namespace

void add_level3(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() { add_ops<level3>(table, blas::level3_for<T>{}); });
    add_ops<level3>(table, blas::level3_for<half>{});
    add_ops<level3>(table, blas::level3_for<bfloat16>{});
    add_ops<level3>(table, type_list<blas::gemm_ex<half>, blas::gemm_ex<bfloat16>, blas::gemm_ex<std::int8_t>>{});
}

} // namespace coaccel::cuda
