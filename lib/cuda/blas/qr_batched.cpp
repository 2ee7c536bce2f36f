#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

struct qr_batched {
    template <class T>
    static call_needs needs(const blas::geqrf_batched<T>& op)
    {
        return {.kernels = kernels(magnitude(op.m), magnitude(op.n), magnitude(op.batch)), .addresses = 2 * op.batch};
    }

    template <class T>
    static call_needs needs(const blas::gels_batched<T>& op)
    {
        // The factorization, and equations with R.
        return {.kernels = kernels(magnitude(op.m), magnitude(op.n), magnitude(op.nrhs), magnitude(op.batch)),
                .addresses = 2 * op.batch,
                .launches = triangular_launches(op.n, op.batch) + 1};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::geqrf_batched<T>& op, const bound_op& o)
    {
        const std::uint64_t reflections = std::min(op.m, op.n);
        return with_tables<T>(
            c, {addresses(o.data(op.a), op.batch, op.stride_a), addresses(o.data(op.tau), op.batch, reflections)},
            op.batch, [&](auto* a, auto* tau) {
                // In memory of the host, written by the call.
                int wrong = 0;
                const auto status = COACCEL_CUBLAS_PICK_INT(c.api, T, geqrfBatched)(
                    c.handle, int_size(op.m), int_size(op.n), a, int_leading(op.m, op.n, op.lda), tau, &wrong,
                    int_size(op.batch));
                return status_of(status, wrong);
            });
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::gels_batched<T>& op, const bound_op& o)
    {
        return with_tables<T>(
            c, {addresses(o.data(op.a), op.batch, op.stride_a), addresses(o.data(op.c), op.batch, op.stride_c)},
            op.batch, [&](auto* a, auto* right) {
                int wrong = 0;
                const auto status = COACCEL_CUBLAS_PICK_INT(c.api, T, gelsBatched)(
                    c.handle, CUBLAS_OP_N, int_size(op.m), int_size(op.n), int_size(op.nrhs), a,
                    int_leading(op.m, op.n, op.lda), right, int_leading(op.m, op.nrhs, op.ldc), &wrong, o.data(op.info),
                    int_size(op.batch));
                return status_of(status, wrong);
            });
    }
};

} // namespace

void add_qr_batched(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() { add_ops<qr_batched>(table, blas::qr_batched_for<T>{}); });
}

} // namespace coaccel::cuda
