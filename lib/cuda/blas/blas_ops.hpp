#ifndef COACCEL_CUDA_BLAS_BLAS_OPS_HPP
#define COACCEL_CUDA_BLAS_BLAS_OPS_HPP

#include "cuda/backend.hpp"

#include <coaccel/ops/blas/level3.hpp>

#include <bit>
#include <concepts>
#include <memory>

// Shared by the ops of all levels. A launch is `cublasStatus_t launch(const blas_call&, const Op&, const bound_op&)`.
namespace coaccel::cuda {

/// Selects the cuBLAS function for T.
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

// The increment of a single element and the leading dimension of a single column have no meaning and may exceed any
// memory. cuBLAS gets harmless values instead.
constexpr std::int64_t increment(std::uint64_t n, std::int64_t inc) noexcept
{
    return n == 1 ? 1 : inc;
}

/// For cuBLAS functions that do nothing if the increment is negative.
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

/// Identifies calls that are likely to run the same kernels: similar sizes (by powers of two) and the same memory
/// layout.
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

/// Device memory that an op needs in addition to its operands.
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

// With 16-bit elements cuBLAS reads A and B even if alpha is zero, and NaN would propagate to C. It gets a product of
// zero vectors instead.
template <class Op>
    requires requires(const Op& op) { op.k; }
std::size_t scratch_of(const Op& op) noexcept
{
    using T = typename Op::value_type;
    return !blas::real<T> && op.alpha == 0 ? (op.m + op.n) * sizeof(T) : 0;
}

/// A copy of an op: after the context has died, the request may be destroyed before the thread pool runs the call.
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
