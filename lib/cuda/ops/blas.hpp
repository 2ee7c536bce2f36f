#ifndef COACCEL_CUDA_OPS_BLAS_HPP
#define COACCEL_CUDA_OPS_BLAS_HPP

#include "cuda/backend.hpp"

#include <coaccel/ops/blas_level3.hpp>

#include <bit>
#include <concepts>
#include <memory>

// What the ops of all levels share. A launch is `cublasStatus_t launch(const blas_call&, const Op&, const bound_op&)`.
namespace coaccel::cuda {

/// The function for T out of the two of cuBLAS.
template <blas::real T, class Single, class Double>
constexpr auto pick(Single single, Double twice) noexcept
{
    if constexpr (std::same_as<T, float>)
        return single;
    else
        return twice;
}

constexpr std::int64_t size(std::uint64_t n) noexcept
{
    return static_cast<std::int64_t>(n);
}

// The increment of one element, and the leading dimension of one column, say nothing and may be beyond any memory.
constexpr std::int64_t increment(std::uint64_t n, std::int64_t inc) noexcept
{
    return n == 1 ? 1 : inc;
}

/// For the functions that do nothing, in cuBLAS, when the increment is negative.
constexpr std::int64_t distance(std::uint64_t n, std::int64_t inc) noexcept
{
    return n == 1 ? 1 : size(coaccel::detail::step_of(inc));
}

constexpr std::int64_t leading(std::uint64_t rows, std::uint64_t cols, std::uint64_t ld) noexcept
{
    return size(ld == 0 || cols == 1 ? rows : ld);
}

constexpr cublasOperation_t operation(blas::transpose t) noexcept
{
    return t == blas::transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
}

/// Calls of one kind run the same kernels, as far as can be told from outside: those whose sizes are of about the same
/// magnitude and whose memory is laid out alike.
template <class Op>
std::uint64_t kind_of(const Op& op, std::uint64_t id) noexcept
{
    const auto add = [&id](auto part) { id = (id ^ static_cast<std::uint64_t>(part)) * 0x100000001b3ull; };
    add(std::bit_width(op.n));
    if constexpr (requires { op.m; })
        add(std::bit_width(op.m));
    if constexpr (requires { op.incx; })
        add(op.incx == 1);
    if constexpr (requires { op.incy; })
        add(op.incy == 1);
    if constexpr (requires { op.alpha; })
        add(op.alpha == 0);
    if constexpr (requires { op.beta; })
        add(op.beta == 0);
    if constexpr (requires { op.trans; })
        add(op.trans);
    if constexpr (requires { op.k; }) {
        add(std::bit_width(op.k));
        for (const auto t : {op.trans_a, op.trans_b})
            add(t);
        for (const auto ld :
             {op.lda ? op.lda : op.shape().a_rows(), op.ldb ? op.ldb : op.shape().b_rows(), op.ldc ? op.ldc : op.m})
            add(ld & -ld & 31);
        add(op.math);
    }
    if constexpr (requires { op.batch; })
        add(std::bit_width(op.batch));
    return id;
}

/// Device memory an op needs beside its operands.
template <class Op>
std::size_t scratch_of(const Op&) noexcept
{
    return 0;
}

template <class T>
std::size_t scratch_of(const blas::iamax<T>& op) noexcept
{
    return op.incx < 0 && op.n > 1 ? op.n * sizeof(T) : 0;
}

// With 16-bit elements cuBLAS reads A and B also when they are multiplied by zero, and not-a-number stays what it is.
// A product of vectors of zeros is multiplied by zero instead.
template <class Op>
    requires requires(const Op& op) { op.k; }
std::size_t scratch_of(const Op& op) noexcept
{
    using T = typename Op::value_type;
    return !blas::real<T> && op.alpha == 0 ? (op.m + op.n) * sizeof(T) : 0;
}

/// An op apart from its request, which may be gone, with a dead context, before the backstage gets round to it.
template <class Op>
struct owned_op {
    Op op;
    bound_op bound;
};

template <class Op, auto Launch>
result<progress> run_blas(backend& b, stream_state& s, bound_op& o)
{
    const Op& op = o.as<Op>();
    BOOST_OUTCOME_TRY(auto ready, s.blas.prepare(b, s.native, scratch_of(op)));
    if (ready == progress::pending)
        return ready;
    const auto direct = [&](const blas_call& c) { return Launch(c, op, o); };
    const auto copy = [&]() -> blas_handle::call {
        auto own = std::make_shared<owned_op<Op>>(owned_op<Op>{op, o});
        own->bound.op = &own->op;
        return [own](const blas_call& c) { return Launch(c, own->op, own->bound); };
    };
    return s.blas.run(kind_of(op, o.info->id), direct, copy);
}

} // namespace coaccel::cuda

#endif
