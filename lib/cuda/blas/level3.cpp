#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

/// The sum of a product has no elements if it is multiplied by zero: cuBLAS would read 16-bit elements.
template <class Op>
std::int64_t inner_size(const Op& op) noexcept
{
    return is_zero(op.alpha) ? 0 : size(op.k);
}

template <class Op>
call_needs needs_of_product(const Op& op, std::uint64_t batch)
{
    const auto s = op.shape();
    return {kernels(magnitude(op.m), magnitude(op.n), magnitude(op.k), magnitude(batch), op.trans_a, op.trans_b,
                    is_zero(op.alpha), is_zero(op.beta), alignment(op.lda, s.a_rows()), alignment(op.ldb, s.b_rows()),
                    alignment(op.ldc, op.m), op.math)};
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
        constexpr auto type = data_type<T>();
        const auto s = op.shape();
        const auto stride = [&op](std::uint64_t given) { return batch_stride(op.batch, given); };
        return c.api.cublasGemmStridedBatchedEx_64(
            c.handle, operation<T>(op.trans_a), operation<T>(op.trans_b), size(op.m), size(op.n), inner_size(op),
            factor(o, op.alpha), o.data(op.a), type, leading(s.a_rows(), s.a_cols(), op.lda), stride(op.stride_a),
            o.data(op.b), type, leading(s.b_rows(), s.b_cols(), op.ldb), stride(op.stride_b), factor(o, op.beta),
            o.data(op.c), type, leading(op.m, op.n, op.ldc), stride(op.stride_c), size(op.batch),
            compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
    }

private:
    /// gemm and gemm_ex.
    template <class Op>
    static cublasStatus_t product(const blas_call& c, const Op& op, const bound_op& o)
    {
        using T = typename Op::value_type;
        auto* const result = o.data(op.c);
        const auto s = op.shape();
        return c.api.cublasGemmEx_64(c.handle, operation<T>(op.trans_a), operation<T>(op.trans_b), size(op.m),
                                     size(op.n), inner_size(op), factor(o, op.alpha), o.data(op.a), data_type<T>(),
                                     leading(s.a_rows(), s.a_cols(), op.lda), o.data(op.b), data_type<T>(),
                                     leading(s.b_rows(), s.b_cols(), op.ldb), factor(o, op.beta), result,
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
