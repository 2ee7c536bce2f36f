#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

/// Where a factorization writes its pivots; null if it has none.
template <class Op>
std::int32_t* written_pivots(const Op& op, const bound_op& o) noexcept
{
    if constexpr (requires { op.pivots; })
        return o.data(op.pivots);
    else
        return nullptr;
}

/// How many pivots an op takes from an earlier factorization.
template <class Op>
std::uint64_t count_read_pivots(const Op& op) noexcept
{
    if constexpr (requires { op.pivots; })
        return op.n * op.batch;
    else
        return 0;
}

/// As with_tables. `call` also gets the pivots of an earlier factorization; null if it has none.
template <class T, class Op, class Call>
cublasStatus_t with_pivots(const blas_call& c, const Op& op, const bound_op& o,
                           std::initializer_list<address_sequence> from, const Call& call)
{
    return with_tables<T>(c, from, op.batch, [&](auto* first, auto* second) {
        if constexpr (requires { op.pivots; }) {
            // They are data of the caller, and zeros when a plan is loaded.
            const auto* const pivots = c.tables.limit_pivots(o.data(op.pivots), count_read_pivots(op), int_size(op.n));
            return pivots ? call(first, second, pivots) : CUBLAS_STATUS_EXECUTION_FAILED;
        } else {
            return call(first, second, static_cast<const std::int32_t*>(nullptr));
        }
    });
}

struct lu_batched {
    template <class Op>
    static call_needs needs(const Op& op)
    {
        const auto size = inclusive_magnitude(op.n);
        const auto count = magnitude(op.batch);
        if constexpr (requires { op.nrhs; })
            // The exchanges, and equations with L and with U.
            return {.kernels = kernels(size, magnitude(op.nrhs), count, op.trans),
                    .addresses = 2 * op.batch,
                    .pivots = count_read_pivots(op),
                    .launches = 2 * triangular_launches(op.n, op.batch) + 1};
        else if constexpr (requires { op.c; })
            return {.kernels = kernels(size, count), .addresses = 2 * op.batch, .pivots = count_read_pivots(op)};
        else
            return {.kernels = kernels(size, count), .addresses = op.batch};
    }

    template <class Op>
    static cublasStatus_t launch(const blas_call& c, const Op& op, const bound_op& o)
    {
        if constexpr (requires { op.nrhs; })
            return solve(c, op, o);
        else if constexpr (requires { op.c; })
            return invert(c, op, o);
        else
            return factorize(c, op, o);
    }

private:
    template <class Op>
    static cublasStatus_t factorize(const blas_call& c, const Op& op, const bound_op& o)
    {
        using T = typename Op::value_type;
        return with_tables<T>(c, {addresses(o.data(op.a), op.batch, op.stride_a)}, op.batch,
                              [&](auto* a, [[maybe_unused]] auto* end) {
                                  return COACCEL_CUBLAS_PICK_INT(c.api, T, getrfBatched)(
                                      c.handle, int_size(op.n), a, int_leading(op.n, op.n, op.lda),
                                      written_pivots(op, o), o.data(op.info), int_size(op.batch));
                              });
    }

    template <class Op>
    static cublasStatus_t solve(const blas_call& c, const Op& op, const bound_op& o)
    {
        using T = typename Op::value_type;
        return with_pivots<T>(
            c, op, o, {addresses(o.data(op.a), op.batch, op.stride_a), addresses(o.data(op.b), op.batch, op.stride_b)},
            [&](auto* a, auto* b, const std::int32_t* pivots) {
                // In memory of the host, written by the call.
                int wrong = 0;
                const auto status = COACCEL_CUBLAS_PICK_INT(c.api, T, getrsBatched)(
                    c.handle, operation<T>(op.trans), int_size(op.n), int_size(op.nrhs), a,
                    int_leading(op.n, op.n, op.lda), pivots, b, int_leading(op.n, op.nrhs, op.ldb), &wrong,
                    int_size(op.batch));
                return status_of(status, wrong);
            });
    }

    template <class Op>
    static cublasStatus_t invert(const blas_call& c, const Op& op, const bound_op& o)
    {
        using T = typename Op::value_type;
        return with_pivots<T>(
            c, op, o, {addresses(o.data(op.a), op.batch, op.stride_a), addresses(o.data(op.c), op.batch, op.stride_c)},
            [&](auto* a, auto* inverse, const std::int32_t* pivots) {
                return COACCEL_CUBLAS_PICK_INT(c.api, T, getriBatched)(
                    c.handle, int_size(op.n), a, int_leading(op.n, op.n, op.lda), pivots, inverse,
                    int_leading(op.n, op.n, op.ldc), o.data(op.info), int_size(op.batch));
            });
    }
};

} // namespace

void add_lu_batched(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() { add_ops<lu_batched>(table, blas::lu_batched_for<T>{}); });
}

} // namespace coaccel::cuda
