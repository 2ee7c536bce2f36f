#include "cuda/blas/blas_ops.hpp"

namespace coaccel::cuda {
namespace {

// The result stays on the device, so this call does not wait for it.
template <class Function, class... Arguments>
cublasStatus_t reduce(const blas_call& c, Function function, Arguments... arguments)
{
    return with_device_pointers(c, [&] { return function(c.handle, arguments...); });
}

struct level1 {
    /// For ops whose kernels depend only on the size and the increments.
    template <class Op>
    static call_needs needs(const Op& op)
        requires(!requires { op.alpha; })
    {
        if constexpr (requires { op.incy; })
            return {kernels(magnitude(op.n), op.incx == 1, op.incy == 1)};
        else
            return {kernels(magnitude(op.n), op.incx == 1)};
    }

    template <class T>
    static call_needs needs(const blas::axpy<T>& op)
    {
        return {kernels(magnitude(op.n), op.incx == 1, op.incy == 1, op.alpha == 0)};
    }

    template <class T>
    static call_needs needs(const blas::scal<T>& op)
    {
        return {kernels(magnitude(op.n), op.incx == 1, op.alpha == 0)};
    }

    /// The scratch memory is for the reversed vector.
    template <class T>
    static call_needs needs(const blas::iamax<T>& op)
    {
        return {kernels(magnitude(op.n), op.incx == 1), op.incx < 0 && op.n > 1 ? op.n * sizeof(T) : 0};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::axpy<T>& op, const bound_op& o)
    {
        if (op.alpha == T(0))
            return CUBLAS_STATUS_SUCCESS;
        return pick<T>(c.api.cublasSaxpy_64, c.api.cublasDaxpy_64)(c.handle, size(op.n), factor(o, op.alpha),
                                                                   o.data(op.x), increment(op.n, op.incx), o.data(op.y),
                                                                   increment(op.n, op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::scal<T>& op, const bound_op& o)
    {
        return pick<T>(c.api.cublasSscal_64, c.api.cublasDscal_64)(c.handle, size(op.n), factor(o, op.alpha),
                                                                   o.data(op.x), distance(op.n, op.incx));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::copy<T>& op, const bound_op& o)
    {
        return pick<T>(c.api.cublasScopy_64, c.api.cublasDcopy_64)(
            c.handle, size(op.n), o.data(op.x), increment(op.n, op.incx), o.data(op.y), increment(op.n, op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::swap<T>& op, const bound_op& o)
    {
        return pick<T>(c.api.cublasSswap_64, c.api.cublasDswap_64)(
            c.handle, size(op.n), o.data(op.x), increment(op.n, op.incx), o.data(op.y), increment(op.n, op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::dot<T>& op, const bound_op& o)
    {
        return reduce(c, pick<T>(c.api.cublasSdot_64, c.api.cublasDdot_64), size(op.n), o.data(op.x),
                      increment(op.n, op.incx), o.data(op.y), increment(op.n, op.incy), static_cast<T*>(c.result));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::nrm2<T>& op, const bound_op& o)
    {
        return reduce(c, pick<T>(c.api.cublasSnrm2_64, c.api.cublasDnrm2_64), size(op.n), o.data(op.x),
                      distance(op.n, op.incx), static_cast<T*>(c.result));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::asum<T>& op, const bound_op& o)
    {
        return reduce(c, pick<T>(c.api.cublasSasum_64, c.api.cublasDasum_64), size(op.n), o.data(op.x),
                      distance(op.n, op.incx), static_cast<T*>(c.result));
    }

    // The first of equal elements depends on the direction, so a vector with a negative increment is reversed first.
    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::iamax<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        std::int64_t inc = distance(op.n, op.incx);
        if (c.scratch) {
            auto* turned = static_cast<T*>(c.scratch);
            const auto status =
                pick<T>(c.api.cublasScopy_64, c.api.cublasDcopy_64)(c.handle, size(op.n), x, op.incx, turned, 1);
            if (status != CUBLAS_STATUS_SUCCESS)
                return status;
            x = turned;
            inc = 1;
        }
        return reduce(c, pick<T>(c.api.cublasIsamax_64, c.api.cublasIdamax_64), size(op.n), x, inc,
                      static_cast<std::int64_t*>(c.result));
    }

    template <class Op>
    static void finish(const Op&, typename Op::reply&) noexcept
    {}

    /// cuBLAS indices start at one.
    template <class T>
    static void finish(const blas::iamax<T>&, std::uint64_t& index) noexcept
    {
        if (index > 0)
            --index;
    }
};

} // namespace

void add_level1(op_table& table)
{
    add_ops<level1>(table, blas::level1_for<float>{});
    add_ops<level1>(table, blas::level1_for<double>{});
}

} // namespace coaccel::cuda
