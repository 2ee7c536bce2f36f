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
        return {kernels(magnitude(op.n), op.incx == 1, op.incy == 1, is_zero(op.alpha))};
    }

    template <class T>
    static call_needs needs(const blas::scal<T>& op)
    {
        return {kernels(magnitude(op.n), op.incx == 1, is_zero(op.alpha))};
    }

    template <class T>
    static call_needs needs(const blas::iamax<T>& op)
    {
        return needs_of_search(op);
    }

    template <class T>
    static call_needs needs(const blas::iamin<T>& op)
    {
        return needs_of_search(op);
    }

    template <class T>
    static call_needs needs(const blas::rotg<T>&)
    {
        return {kernels()};
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::axpy<T>& op, const bound_op& o)
    {
        if (is_zero(op.alpha))
            return CUBLAS_STATUS_SUCCESS;
        return COACCEL_CUBLAS_PICK(c.api, T, axpy)(c.handle, size(op.n), native(factor(o, op.alpha)),
                                                   native(o.data(op.x)), increment(op.n, op.incx), native(o.data(op.y)),
                                                   increment(op.n, op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::scal<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, scal)(c.handle, size(op.n), native(factor(o, op.alpha)),
                                                   native(o.data(op.x)), distance(op.n, op.incx));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::copy<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, copy)(c.handle, size(op.n), native(o.data(op.x)), increment(op.n, op.incx),
                                                   native(o.data(op.y)), increment(op.n, op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::swap<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, swap)(c.handle, size(op.n), native(o.data(op.x)), increment(op.n, op.incx),
                                                   native(o.data(op.y)), increment(op.n, op.incy));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::rot<T>& op, const bound_op& o)
    {
        return COACCEL_CUBLAS_PICK(c.api, T, rot)(c.handle, size(op.n), native(o.data(op.x)), increment(op.n, op.incx),
                                                  native(o.data(op.y)), increment(op.n, op.incy), factor(o, op.c),
                                                  native(factor(o, op.s)));
    }

    // All its arguments are results.
    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::rotg<T>& op, const bound_op& o)
    {
        return reduce(c, pick<T>(c.api.cublasSrotg, c.api.cublasDrotg, c.api.cublasCrotg, c.api.cublasZrotg),
                      native(o.data(op.a)), native(o.data(op.b)), o.data(op.c), native(o.data(op.s)));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::dot<T>& op, const bound_op& o)
    {
        return inner_product(pick<T>(c.api.cublasSdot_64, c.api.cublasDdot_64), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::dotu<T>& op, const bound_op& o)
    {
        return inner_product(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, dotu), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::dotc<T>& op, const bound_op& o)
    {
        return inner_product(COACCEL_CUBLAS_PICK_COMPLEX(c.api, T, dotc), c, op, o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::nrm2<T>& op, const bound_op& o)
    {
        return reduce(
            c, pick<T>(c.api.cublasSnrm2_64, c.api.cublasDnrm2_64, c.api.cublasScnrm2_64, c.api.cublasDznrm2_64),
            size(op.n), native(o.data(op.x)), distance(op.n, op.incx), static_cast<blas::real_part<T>*>(c.result));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::asum<T>& op, const bound_op& o)
    {
        return reduce(
            c, pick<T>(c.api.cublasSasum_64, c.api.cublasDasum_64, c.api.cublasScasum_64, c.api.cublasDzasum_64),
            size(op.n), native(o.data(op.x)), distance(op.n, op.incx), static_cast<blas::real_part<T>*>(c.result));
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::iamax<T>& op, const bound_op& o)
    {
        return search(
            pick<T>(c.api.cublasIsamax_64, c.api.cublasIdamax_64, c.api.cublasIcamax_64, c.api.cublasIzamax_64), c, op,
            o);
    }

    template <class T>
    static cublasStatus_t launch(const blas_call& c, const blas::iamin<T>& op, const bound_op& o)
    {
        return search(
            pick<T>(c.api.cublasIsamin_64, c.api.cublasIdamin_64, c.api.cublasIcamin_64, c.api.cublasIzamin_64), c, op,
            o);
    }

    template <class Op>
    static void finish(const Op&, typename Op::reply&) noexcept
    {}

    template <class T>
    static void finish(const blas::iamax<T>&, std::uint64_t& index) noexcept
    {
        index = zero_based(index);
    }

    template <class T>
    static void finish(const blas::iamin<T>&, std::uint64_t& index) noexcept
    {
        index = zero_based(index);
    }

private:
    template <class Function, class Op>
    static cublasStatus_t inner_product(Function function, const blas_call& c, const Op& op, const bound_op& o)
    {
        return reduce(c, function, size(op.n), native(o.data(op.x)), increment(op.n, op.incx), native(o.data(op.y)),
                      increment(op.n, op.incy), native(static_cast<typename Op::value_type*>(c.result)));
    }

    /// The scratch memory is for the reversed vector.
    template <class Op>
    static call_needs needs_of_search(const Op& op)
    {
        return {kernels(magnitude(op.n), op.incx == 1),
                op.incx < 0 && op.n > 1 ? op.n * sizeof(typename Op::value_type) : 0};
    }

    // The first of equal elements depends on the direction, so a vector with a negative increment is reversed first.
    template <class Function, class Op>
    static cublasStatus_t search(Function function, const blas_call& c, const Op& op, const bound_op& o)
    {
        using T = typename Op::value_type;
        const T* x = o.data(op.x);
        std::int64_t inc = distance(op.n, op.incx);
        if (c.scratch) {
            auto* turned = static_cast<T*>(c.scratch);
            const auto status =
                COACCEL_CUBLAS_PICK(c.api, T, copy)(c.handle, size(op.n), native(x), op.incx, native(turned), 1);
            if (status != CUBLAS_STATUS_SUCCESS)
                return status;
            x = turned;
            inc = 1;
        }
        return reduce(c, function, size(op.n), native(x), inc, static_cast<std::int64_t*>(c.result));
    }

    /// cuBLAS indices start at one.
    static std::uint64_t zero_based(std::uint64_t index) noexcept { return index > 0 ? index - 1 : 0; }
};

} // namespace

void add_level1(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() {
        add_ops<level1>(table, blas::level1_for<T>{});
        add_ops<level1>(table, blas::level1_rotation_for<T>{});
    });
}

} // namespace coaccel::cuda
