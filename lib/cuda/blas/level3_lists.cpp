#include "cuda/blas/blas_ops.hpp"

#include <coaccel/ops/blas/level3_lists.hpp>

#include <algorithm>
#include <span>

namespace coaccel::cuda {
namespace {

using blas::most_products;

static_assert(std::tuple_size_v<address_list> == 3 * most_products);

/// Puts the addresses of all operands into tables and calls `call` with those of A, B and C.
template <class Call>
cublasStatus_t with_listed(const blas_call& c, std::uint64_t count, const bound_op& o, const Call& call)
{
    // The operands of an op are in the order of its fields: all A, all B, all C.
    address_list all{};
    for (std::size_t table = 0; table < 3; ++table)
        for (std::size_t i = 0; i < count; ++i)
            all[table * count + i] = reinterpret_cast<CUdeviceptr>(o.operands[table * most_products + i]);
    auto* const tables = c.tables.store(all, static_cast<std::uint32_t>(3 * count));
    // The error is that of the tables.
    if (!tables)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    auto* const results = const_cast<void**>(tables) + 2 * count;
    return call(tables, tables + count, results);
}

/// Types of which cuBLAS computes products of different sizes in one call.
template <class T>
constexpr bool has_groups =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, half> || std::same_as<T, bfloat16>;

/// The arguments of one product of a list. The factors are fields of the op.
template <class T>
struct listed_product {
    blas::detail::gemm_shape shape;
    std::uint64_t lda, ldb, ldc;
    const blas::scalar<T>& alpha;
    const blas::scalar<T>& beta;

    cublasOperation_t trans_a() const noexcept { return operation<T>(shape.trans_a); }
    cublasOperation_t trans_b() const noexcept { return operation<T>(shape.trans_b); }
    std::int64_t m() const noexcept { return size(shape.m); }
    std::int64_t n() const noexcept { return size(shape.n); }
    std::int64_t k() const noexcept { return size(shape.k); }
    std::int64_t step_a() const noexcept { return leading(shape.a_rows(), shape.a_cols(), lda); }
    std::int64_t step_b() const noexcept { return leading(shape.b_rows(), shape.b_cols(), ldb); }
    std::int64_t step_c() const noexcept { return leading(shape.m, shape.n, ldc); }
};

template <class T>
listed_product<T> product_of(const blas::gemm_batched<T>& op, std::size_t) noexcept
{
    return {op.shape(), op.lda, op.ldb, op.ldc, op.alpha, op.beta};
}

template <class T>
listed_product<T> product_of(const blas::gemm_grouped<T>& op, std::size_t i) noexcept
{
    return {op.shape(i), op.lda[i], op.ldb[i], op.ldc[i], op.alpha[i], op.beta[i]};
}

/// Tensor cores load 16 bytes at a time. For matrices at a list of addresses, cuBLAS takes kernels for them by the
/// sizes alone: on an H200, kernels of cuBLAS 13.1 wrote before the first element of f16 matrices that were not
/// aligned.
template <class T>
bool are_aligned(const bound_op& o, std::uint64_t count, blas::math math) noexcept
{
    if (sizeof(T) != 2 && math != blas::math::tf32)
        return true;
    std::uintptr_t all = 0;
    for (std::size_t table = 0; table < 3; ++table)
        for (std::size_t i = 0; i < count; ++i)
            all |= reinterpret_cast<std::uintptr_t>(o.operands[table * most_products + i]);
    return all % 16 == 0;
}

/// Whether cuBLAS can compute all products in one call. It would read factors that are multiplied by zero, and refuses
/// products over no elements if beta is zero.
template <class Op>
bool fits_one_call(const Op& op, const bound_op& o) noexcept
{
    using T = typename Op::value_type;
    if constexpr (std::same_as<Op, blas::gemm_grouped<T>>)
        if (!has_groups<T> || (!std::same_as<T, float> && op.math == blas::math::pedantic))
            return false;
    for (std::size_t i = 0; i < op.count; ++i)
        if (is_zero(product_of(op, i).alpha))
            return false;
    return are_aligned<T>(o, op.count, op.math);
}

template <class Op>
cublasStatus_t one_by_one(const blas_call& c, const Op& op, const bound_op& o)
{
    using T = typename Op::value_type;
    constexpr auto type = data_type<T>();
    auto status = CUBLAS_STATUS_SUCCESS;
    for (std::size_t i = 0; i < op.count && status == CUBLAS_STATUS_SUCCESS; ++i) {
        const auto p = product_of(op, i);
        const auto* const alpha = factor(o, p.alpha);
        const auto* const beta = factor(o, p.beta);
        auto* const result = static_cast<T*>(o.operands[2 * most_products + i]);
        if (is_zero(p.alpha))
            status = scale<T>(c, {alpha, beta}, {result, p.shape.m, p.shape.n, p.step_c(), 0, 1});
        else
            status =
                c.api.cublasGemmEx_64(c.handle, p.trans_a(), p.trans_b(), p.m(), p.n(), p.k(), alpha, o.operands[i],
                                      type, p.step_a(), o.operands[most_products + i], type, p.step_b(), beta, result,
                                      type, p.step_c(), compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
    }
    return status;
}

struct level3_lists {
    template <class Op>
    static call_needs needs(const Op& op, const bound_op& o)
    {
        const bool one_call = fits_one_call(op, o);
        std::uint64_t key = kernels(op.count, op.math, one_call);
        for (std::size_t i = 0; i < op.count; ++i) {
            const auto p = product_of(op, i);
            key = kernels(key, magnitude(p.shape.m), magnitude(p.shape.n), magnitude(p.shape.k), p.shape.trans_a,
                          p.shape.trans_b, is_zero(p.alpha), is_zero(p.beta), alignment(p.lda, p.shape.a_rows()),
                          alignment(p.ldb, p.shape.b_rows()), alignment(p.ldc, p.shape.m));
        }
        if (!one_call)
            return {.kernels = key, .launches = op.count};
        // cuBLAS also computes the sizes of groups on the GPU.
        return {.kernels = key,
                .addresses = 3 * op.count,
                .launches = std::same_as<Op, blas::gemm_grouped<typename Op::value_type>> ? op.count + 1 : 1};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_batched<T>& op, const bound_op& o)
    {
        if (!fits_one_call(op, o))
            return one_by_one(c, op, o);
        const auto p = product_of(op, 0);
        return with_listed(c, op.count, o, [&](auto* a, auto* b, auto* results) {
            return c.api.cublasGemmBatchedEx_64(c.handle, p.trans_a(), p.trans_b(), p.m(), p.n(), p.k(),
                                                factor(o, op.alpha), a, data_type<T>(), p.step_a(), b, data_type<T>(),
                                                p.step_b(), factor(o, op.beta), results, data_type<T>(), p.step_c(),
                                                size(op.count), compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
        });
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_grouped<T>& op, const bound_op& o)
    {
#if CUBLAS_VERSION >= 120500
        if (c.api.cublasGemmGroupedBatchedEx_64 && fits_one_call(op, o))
            return in_groups(c, op, o);
#endif
        return one_by_one(c, op, o);
    }

private:
#if CUBLAS_VERSION >= 120500
    /// Each product is a group of its own.
    template <class T>
    static cublasStatus_t in_groups(const blas_call& c, const blas::gemm_grouped<T>& op, const bound_op& o)
    {
        std::array<cublasOperation_t, most_products> trans_a{}, trans_b{};
        std::array<std::int64_t, most_products> m{}, n{}, k{}, lda{}, ldb{}, ldc{}, ones{};
        ones.fill(1);
        for (std::size_t i = 0; i < op.count; ++i) {
            const auto p = product_of(op, i);
            trans_a[i] = p.trans_a();
            trans_b[i] = p.trans_b();
            m[i] = p.m();
            n[i] = p.n();
            k[i] = p.k();
            lda[i] = p.step_a();
            ldb[i] = p.step_b();
            ldc[i] = p.step_c();
        }
        return with_listed(c, op.count, o, [&](auto* a, auto* b, auto* results) {
            return c.api.cublasGemmGroupedBatchedEx_64(
                c.handle, trans_a.data(), trans_b.data(), m.data(), n.data(), k.data(), op.alpha.data(), a,
                data_type<T>(), lda.data(), b, data_type<T>(), ldb.data(), op.beta.data(), results, data_type<T>(),
                ldc.data(), size(op.count), ones.data(), compute_type<T>(op.math));
        });
    }
#endif
};

} // namespace

void add_level3_lists(op_table& table)
{
    const auto add = [&table]<class T>() { add_ops<level3_lists>(table, blas::level3_lists_for<T>{}); };
    blas::detail::for_each_dense(add);
    add.template operator()<half>();
    add.template operator()<bfloat16>();
}

} // namespace coaccel::cuda
