#include "host/ops/eigen.hpp"
#include "host/ops/integer_products.hpp"
#include "host/ops/libraries.hpp"
#include "host/ops/products.hpp"

#include <coaccel/ops/blas/level3_lists.hpp>

namespace coaccel::host {
namespace {

// One product. Op is gemm, or gemm_strided_batched for each member of the batch.
template <class T, class Op>
void product(const Op& op, const T* a, const T* b, T* c)
{
    const auto s = op.shape();
    if constexpr (blas::dense_element<T>) {
        multiply<T>(op.trans_a, op.trans_b, matrix(a, s.a_rows(), s.a_cols(), op.lda),
                    matrix(b, s.b_rows(), s.b_cols(), op.ldb), matrix(c, op.m, op.n, op.ldc), op.alpha, op.beta);
    } else {
        const auto wide_a = converted<float>(a, s.a_rows(), s.a_cols(), op.lda);
        const auto wide_b = converted<float>(b, s.b_rows(), s.b_cols(), op.ldb);
        auto wide_c = op.beta == 0 ? dense<float>(static_cast<Index>(op.m), static_cast<Index>(op.n))
                                   : converted<float>(c, op.m, op.n, op.ldc);
        multiply<float>(op.trans_a, op.trans_b, whole(wide_a), whole(wide_b), whole(wide_c), op.alpha, op.beta);
        const std::uint64_t step = op.ldc == 0 ? op.m : op.ldc;
        for (std::uint64_t j = 0; j < op.n; ++j)
            for (std::uint64_t i = 0; i < op.m; ++i)
                c[i + j * step] = T(wide_c(static_cast<Index>(i), static_cast<Index>(j)));
    }
}

struct level3 {
    template <class T>
    static void run(const blas::gemm<T>& op, const bound_op& o)
    {
        product(op, o.data(op.a), o.data(op.b), o.data(op.c));
    }

    template <class T>
    static void run(const blas::gemm_ex<T>& op, const bound_op& o)
    {
        if constexpr (std::same_as<T, std::int8_t>) {
            integer_product{op.shape(), op.lda, op.ldb, op.ldc, op.ldc, op.alpha, op.beta}.run(
                o.data(op.a), o.data(op.b), o.data(op.c), o.data(op.c));
        } else {
            const auto s = op.shape();
            const auto a = converted<float>(o.data(op.a), s.a_rows(), s.a_cols(), op.lda);
            const auto b = converted<float>(o.data(op.b), s.b_rows(), s.b_cols(), op.ldb);
            multiply<float>(op.trans_a, op.trans_b, whole(a), whole(b), matrix(o.data(op.c), op.m, op.n, op.ldc),
                            op.alpha, op.beta);
        }
    }

    template <class T>
    static void run(const blas::gemm_strided_batched<T>& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i)
            product(op, o.data(op.a) + i * op.stride_a, o.data(op.b) + i * op.stride_b, o.data(op.c) + i * op.stride_c);
    }

    template <class T>
    static void run(const blas::gemm_batched<T>& op, const bound_op& o)
    {
        for (std::size_t i = 0; i < op.count; ++i)
            product(op, o.data(op.a[i]), o.data(op.b[i]), o.data(op.c[i]));
    }

    template <class T>
    static void run(const blas::gemm_grouped<T>& op, const bound_op& o)
    {
        for (std::size_t i = 0; i < op.count; ++i)
            product(op.product(i), o.data(op.a[i]), o.data(op.b[i]), o.data(op.c[i]));
    }
};

} // namespace

void add_blas_level3(op_table& table)
{
    const auto add = [&table]<class T>() {
        add_ops<level3>(table, blas::level3_for<T>{});
        add_ops<level3>(table, blas::level3_lists_for<T>{});
    };
    blas::detail::for_each_dense(add);
    add.template operator()<half>();
    add.template operator()<bfloat16>();
    add_ops<level3>(table, type_list<blas::gemm_ex<half>, blas::gemm_ex<bfloat16>, blas::gemm_ex<std::int8_t>>{});
}

} // namespace coaccel::host
