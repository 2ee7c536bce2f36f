#include "host/op_table.hpp"
#include "host/ops/eigen.hpp"

#include <coaccel/ops/blas/level1.hpp>

namespace coaccel::host {
namespace {

// For elementwise ops, only the relative direction of the two vectors matters.
template <class Op>
bool opposed(const Op& op)
{
    return (op.incx < 0) != (op.incy < 0);
}

template <class T>
void axpy(const blas::axpy<T>& op, const bound_op& o)
{
    const auto x = vector(o.data(op.x), op.n, op.incx);
    auto y = vector(o.data(op.y), op.n, op.incy);
    if (op.alpha == T(0))
        return;
    if (opposed(op))
        y += op.alpha * x.reverse();
    else
        y += op.alpha * x;
}

template <class T>
void scal(const blas::scal<T>& op, const bound_op& o)
{
    vector(o.data(op.x), op.n, op.incx) *= op.alpha;
}

template <class T>
void copy(const blas::copy<T>& op, const bound_op& o)
{
    const auto x = vector(o.data(op.x), op.n, op.incx);
    auto y = vector(o.data(op.y), op.n, op.incy);
    if (opposed(op))
        y = x.reverse();
    else
        y = x;
}

template <class T>
void swap(const blas::swap<T>& op, const bound_op& o)
{
    auto x = vector(o.data(op.x), op.n, op.incx);
    auto y = vector(o.data(op.y), op.n, op.incy);
    if (opposed(op))
        y.swap(x.reverse());
    else
        y.swap(x);
}

template <class T>
T dot(const blas::dot<T>& op, const bound_op& o)
{
    const auto x = vector(o.data(op.x), op.n, op.incx);
    const auto y = vector(o.data(op.y), op.n, op.incy);
    return opposed(op) ? y.dot(x.reverse()) : y.dot(x);
}

template <class T>
T nrm2(const blas::nrm2<T>& op, const bound_op& o)
{
    return vector(o.data(op.x), op.n, op.incx).stableNorm();
}

template <class T>
T asum(const blas::asum<T>& op, const bound_op& o)
{
    return vector(o.data(op.x), op.n, op.incx).cwiseAbs().sum();
}

template <class T>
std::uint64_t iamax(const blas::iamax<T>& op, const bound_op& o)
{
    const auto x = vector(o.data(op.x), op.n, op.incx);
    Eigen::Index at = 0;
    if (op.incx < 0)
        x.reverse().cwiseAbs().maxCoeff(&at);
    else
        x.cwiseAbs().maxCoeff(&at);
    return static_cast<std::uint64_t>(at);
}

template <class T>
void add_for(op_table& table)
{
    table.add<blas::axpy<T>, axpy<T>>();
    table.add<blas::scal<T>, scal<T>>();
    table.add<blas::copy<T>, copy<T>>();
    table.add<blas::swap<T>, swap<T>>();
    table.add<blas::dot<T>, dot<T>>();
    table.add<blas::nrm2<T>, nrm2<T>>();
    table.add<blas::asum<T>, asum<T>>();
    table.add<blas::iamax<T>, iamax<T>>();
}

} // namespace

void add_blas_level1(op_table& table)
{
    add_for<float>(table);
    add_for<double>(table);
}

} // namespace coaccel::host
