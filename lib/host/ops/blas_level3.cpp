#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level3.hpp>

namespace coaccel::host {
namespace {

template <class T>
using dense = Eigen::Matrix<T, Dynamic, Dynamic>;

template <class A, class B, class C, class S>
void multiply(const A& a, const B& b, C&& c, S alpha, S beta)
{
    // An operand multiplied by zero is not read, because it may be uninitialized.
    if (beta == S(0))
        c.setZero();
    else if (beta != S(1))
        c *= beta;
    if (alpha != S(0))
        c.noalias() += alpha * a * b;
}

template <class A, class B, class C, class S>
void multiply(blas::transpose ta, blas::transpose tb, const A& a, const B& b, C&& c, S alpha, S beta)
{
    const bool at = ta == blas::transpose::yes;
    const bool bt = tb == blas::transpose::yes;
    if (at && bt)
        multiply(a.transpose(), b.transpose(), c, alpha, beta);
    else if (at)
        multiply(a.transpose(), b, c, alpha, beta);
    else if (bt)
        multiply(a, b.transpose(), c, alpha, beta);
    else
        multiply(a, b, c, alpha, beta);
}

template <class T>
dense<float> widened(const T* data, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld)
{
    dense<float> wide(static_cast<Index>(rows), static_cast<Index>(cols));
    const std::uint64_t step = ld == 0 ? rows : ld;
    for (std::uint64_t j = 0; j < cols; ++j)
        for (std::uint64_t i = 0; i < rows; ++i)
            wide(static_cast<Index>(i), static_cast<Index>(j)) = static_cast<float>(data[i + j * step]);
    return wide;
}

// One product. Op is gemm, or gemm_strided_batched for each member of the batch.
template <class T, class Op>
void product(const Op& op, const T* a, const T* b, T* c)
{
    const auto s = op.shape();
    if constexpr (blas::real<T>) {
        multiply(op.trans_a, op.trans_b, matrix(a, s.a_rows(), s.a_cols(), op.lda),
                 matrix(b, s.b_rows(), s.b_cols(), op.ldb), matrix(c, op.m, op.n, op.ldc), op.alpha, op.beta);
    } else {
        const auto wide_a = widened(a, s.a_rows(), s.a_cols(), op.lda);
        const auto wide_b = widened(b, s.b_rows(), s.b_cols(), op.ldb);
        auto wide_c = op.beta == 0 ? dense<float>(static_cast<Index>(op.m), static_cast<Index>(op.n))
                                   : widened(c, op.m, op.n, op.ldc);
        multiply(op.trans_a, op.trans_b, wide_a, wide_b, wide_c, op.alpha, op.beta);
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
    static void run(const blas::gemm_strided_batched<T>& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i)
            product(op, o.data(op.a) + i * op.stride_a, o.data(op.b) + i * op.stride_b, o.data(op.c) + i * op.stride_c);
    }
};

} // namespace

void add_blas_level3(op_table& table)
{
    add_ops<level3>(table, blas::level3_for<float>{});
    add_ops<level3>(table, blas::level3_for<double>{});
    add_ops<level3>(table, blas::level3_for<half>{});
    add_ops<level3>(table, blas::level3_for<bfloat16>{});
}

} // namespace coaccel::host
