#include "cuda/blas/blas_ops.hpp"

#include <cstring>
#include <utility>

namespace coaccel::cuda {
namespace {

template <class T>
cublasStatus_t axpy(const blas_call& c, const blas::axpy<T>& op, const bound_op& o)
{
    if (op.alpha == T(0))
        return CUBLAS_STATUS_SUCCESS;
    return pick<T>(c.api.cublasSaxpy_64, c.api.cublasDaxpy_64)(c.handle, size(op.n), &op.alpha, o.data(op.x),
                                                               increment(op.n, op.incx), o.data(op.y),
                                                               increment(op.n, op.incy));
}

template <class T>
cublasStatus_t scal(const blas_call& c, const blas::scal<T>& op, const bound_op& o)
{
    return pick<T>(c.api.cublasSscal_64, c.api.cublasDscal_64)(c.handle, size(op.n), &op.alpha, o.data(op.x),
                                                               distance(op.n, op.incx));
}

template <class T>
cublasStatus_t copy(const blas_call& c, const blas::copy<T>& op, const bound_op& o)
{
    return pick<T>(c.api.cublasScopy_64, c.api.cublasDcopy_64)(
        c.handle, size(op.n), o.data(op.x), increment(op.n, op.incx), o.data(op.y), increment(op.n, op.incy));
}

template <class T>
cublasStatus_t swap(const blas_call& c, const blas::swap<T>& op, const bound_op& o)
{
    return pick<T>(c.api.cublasSswap_64, c.api.cublasDswap_64)(
        c.handle, size(op.n), o.data(op.x), increment(op.n, op.incx), o.data(op.y), increment(op.n, op.incy));
}

// The result stays on the device, so this call does not wait for it.
template <class Function, class... Arguments>
cublasStatus_t reduce(const blas_call& c, Function function, Arguments... arguments)
{
    auto status = c.api.cublasSetPointerMode(c.handle, CUBLAS_POINTER_MODE_DEVICE);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = function(c.handle, arguments...);
    const auto restored = c.api.cublasSetPointerMode(c.handle, CUBLAS_POINTER_MODE_HOST);
    return status == CUBLAS_STATUS_SUCCESS ? restored : status;
}

template <class T>
cublasStatus_t dot(const blas_call& c, const blas::dot<T>& op, const bound_op& o)
{
    return reduce(c, pick<T>(c.api.cublasSdot_64, c.api.cublasDdot_64), size(op.n), o.data(op.x),
                  increment(op.n, op.incx), o.data(op.y), increment(op.n, op.incy), static_cast<T*>(c.result));
}

template <class T>
cublasStatus_t nrm2(const blas_call& c, const blas::nrm2<T>& op, const bound_op& o)
{
    return reduce(c, pick<T>(c.api.cublasSnrm2_64, c.api.cublasDnrm2_64), size(op.n), o.data(op.x),
                  distance(op.n, op.incx), static_cast<T*>(c.result));
}

template <class T>
cublasStatus_t asum(const blas_call& c, const blas::asum<T>& op, const bound_op& o)
{
    return reduce(c, pick<T>(c.api.cublasSasum_64, c.api.cublasDasum_64), size(op.n), o.data(op.x),
                  distance(op.n, op.incx), static_cast<T*>(c.result));
}

// The first of equal elements depends on the direction, so a vector with a negative increment is reversed first.
template <class T>
cublasStatus_t iamax(const blas_call& c, const blas::iamax<T>& op, const bound_op& o)
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

constexpr std::size_t cell_bytes = 64;

template <class Op, auto Launch>
result<progress> run_reduction(backend& b, stream_state& s, bound_op& o)
{
    if (!o.state) {
        BOOST_OUTCOME_TRY(o.state, b.staging().try_allocate_own(cell_bytes));
        if (!o.state)
            return progress::pending;
    }
    BOOST_OUTCOME_TRY(auto ran, (run_blas<Op, Launch>(b, s, o)));
    if (ran == progress::passed)
        if (auto ec = b.check(b.api().cuMemcpyDtoHAsync(o.state, s.blas.cell(), sizeof(typename Op::reply), s.native)))
            return ec;
    return ran;
}

template <class Op>
error_code finish_reduction(backend& b, bound_op& o) noexcept
{
    void* cell = std::exchange(o.state, nullptr);
    if (cell && o.reply)
        std::memcpy(o.reply, cell, sizeof(typename Op::reply));
    if (cell)
        b.staging().release(cell);
    return {};
}

template <class T>
error_code finish_iamax(backend& b, bound_op& o) noexcept
{
    const bool ended = o.state != nullptr;
    const auto ec = finish_reduction<blas::iamax<T>>(b, o);
    // cuBLAS indices start at one.
    if (auto* at = static_cast<std::uint64_t*>(o.reply); ended && at && *at > 0)
        --*at;
    return ec;
}

template <class T>
void add_for(op_table& table)
{
    table.add<blas::axpy<T>, run_blas<blas::axpy<T>, axpy<T>>>();
    table.add<blas::scal<T>, run_blas<blas::scal<T>, scal<T>>>();
    table.add<blas::copy<T>, run_blas<blas::copy<T>, copy<T>>>();
    table.add<blas::swap<T>, run_blas<blas::swap<T>, swap<T>>>();
    table.add<blas::dot<T>, run_reduction<blas::dot<T>, dot<T>>, finish_reduction<blas::dot<T>>>();
    table.add<blas::nrm2<T>, run_reduction<blas::nrm2<T>, nrm2<T>>, finish_reduction<blas::nrm2<T>>>();
    table.add<blas::asum<T>, run_reduction<blas::asum<T>, asum<T>>, finish_reduction<blas::asum<T>>>();
    table.add<blas::iamax<T>, run_reduction<blas::iamax<T>, iamax<T>>, finish_iamax<T>>();
}

} // namespace

void add_blas_level1(op_table& table)
{
    add_for<float>(table);
    add_for<double>(table);
}

} // namespace coaccel::cuda
