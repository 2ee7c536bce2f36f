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

struct level3_lists {
    template <class T>
    static call_needs needs(const blas::gemm_batched<T>& op)
    {
        const auto s = op.shape();
        return {.kernels = kernels(magnitude(op.m), magnitude(op.n), magnitude(op.k), magnitude(op.count), op.trans_a,
                                   op.trans_b, is_zero(op.alpha), is_zero(op.beta), alignment(op.lda, s.a_rows()),
                                   alignment(op.ldb, s.b_rows()), alignment(op.ldc, op.m), op.math),
                .addresses = 3 * op.count};
    }

    template <class T>
    static call_needs needs(const blas::gemm_grouped<T>& op)
    {
        std::uint64_t key = kernels(op.count, op.math);
        for (std::size_t i = 0; i < op.count; ++i)
            key = kernels(key, magnitude(op.m[i]), magnitude(op.n[i]), magnitude(op.k[i]), op.trans_a[i], op.trans_b[i],
                          is_zero(op.alpha[i]), is_zero(op.beta[i]));
        return {.kernels = key, .addresses = 3 * op.count, .launches = op.count + 1};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_batched<T>& op, const bound_op& o)
    {
        const auto s = op.shape();
        return with_listed(c, op.count, o, [&](auto* a, auto* b, auto* results) {
            return c.api.cublasGemmBatchedEx_64(
                c.handle, operation<T>(op.trans_a), operation<T>(op.trans_b), size(op.m), size(op.n),
                is_zero(op.alpha) ? 0 : size(op.k), factor(o, op.alpha), a, data_type<T>(),
                leading(s.a_rows(), s.a_cols(), op.lda), b, data_type<T>(), leading(s.b_rows(), s.b_cols(), op.ldb),
                factor(o, op.beta), results, data_type<T>(), leading(op.m, op.n, op.ldc), size(op.count),
                compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
        });
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gemm_grouped<T>& op, const bound_op& o)
    {
#if CUBLAS_VERSION >= 120500
        if constexpr (has_groups<T>)
            if (c.api.cublasGemmGroupedBatchedEx_64 && !(std::same_as<T, double> && op.math == blas::math::pedantic))
                return in_one_call(c, op, o);
#endif
        return one_by_one(c, op, o);
    }

private:
    /// The arguments of one product.
    struct product {
        cublasOperation_t trans_a, trans_b;
        std::int64_t m, n, k, lda, ldb, ldc;
    };

    template <class T>
    static product product_of(const blas::gemm_grouped<T>& op, std::size_t i) noexcept
    {
        const auto s = op.shape(i);
        return {operation<T>(s.trans_a),
                operation<T>(s.trans_b),
                size(s.m),
                size(s.n),
                is_zero(op.alpha[i]) ? 0 : size(s.k),
                leading(s.a_rows(), s.a_cols(), op.lda[i]),
                leading(s.b_rows(), s.b_cols(), op.ldb[i]),
                leading(s.m, s.n, op.ldc[i])};
    }

#if CUBLAS_VERSION >= 120500
    /// Each product is a group of its own.
    template <class T>
    static cublasStatus_t in_one_call(const blas_call& c, const blas::gemm_grouped<T>& op, const bound_op& o)
    {
        std::array<cublasOperation_t, most_products> trans_a{}, trans_b{};
        std::array<std::int64_t, most_products> m{}, n{}, k{}, lda{}, ldb{}, ldc{}, ones{};
        ones.fill(1);
        for (std::size_t i = 0; i < op.count; ++i) {
            const auto p = product_of(op, i);
            trans_a[i] = p.trans_a;
            trans_b[i] = p.trans_b;
            m[i] = p.m;
            n[i] = p.n;
            k[i] = p.k;
            lda[i] = p.lda;
            ldb[i] = p.ldb;
            ldc[i] = p.ldc;
        }
        return with_listed(c, op.count, o, [&](auto* a, auto* b, auto* results) {
            return c.api.cublasGemmGroupedBatchedEx_64(
                c.handle, trans_a.data(), trans_b.data(), m.data(), n.data(), k.data(), op.alpha.data(), a,
                data_type<T>(), lda.data(), b, data_type<T>(), ldb.data(), op.beta.data(), results, data_type<T>(),
                ldc.data(), size(op.count), ones.data(), compute_type<T>(op.math));
        });
    }
#endif

    template <class T>
    static cublasStatus_t one_by_one(const blas_call& c, const blas::gemm_grouped<T>& op, const bound_op& o)
    {
        auto status = CUBLAS_STATUS_SUCCESS;
        for (std::size_t i = 0; i < op.count && status == CUBLAS_STATUS_SUCCESS; ++i) {
            const auto p = product_of(op, i);
            status =
                c.api.cublasGemmEx_64(c.handle, p.trans_a, p.trans_b, p.m, p.n, p.k, factor(o, op.alpha[i]),
                                      o.operands[i], data_type<T>(), p.lda, o.operands[most_products + i],
                                      data_type<T>(), p.ldb, factor(o, op.beta[i]), o.operands[2 * most_products + i],
                                      data_type<T>(), p.ldc, compute_type<T>(op.math), CUBLAS_GEMM_DEFAULT);
        }
        return status;
    }
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
