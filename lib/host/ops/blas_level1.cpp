#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level1.hpp>

namespace coaccel::host {
namespace {

// For elementwise ops, only the relative direction of the two vectors matters.
template <class Op>
bool opposed(const Op& op)
{
    return (op.incx < 0) != (op.incy < 0);
}

struct level1 {
    template <class T>
    static void run(const blas::axpy<T>& op, const bound_op& o)
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
    static void run(const blas::scal<T>& op, const bound_op& o)
    {
        vector(o.data(op.x), op.n, op.incx) *= op.alpha;
    }

    template <class T>
    static void run(const blas::copy<T>& op, const bound_op& o)
    {
        const auto x = vector(o.data(op.x), op.n, op.incx);
        auto y = vector(o.data(op.y), op.n, op.incy);
        if (opposed(op))
            y = x.reverse();
        else
            y = x;
    }

    template <class T>
    static void run(const blas::swap<T>& op, const bound_op& o)
    {
        auto x = vector(o.data(op.x), op.n, op.incx);
        auto y = vector(o.data(op.y), op.n, op.incy);
        if (opposed(op))
            y.swap(x.reverse());
        else
            y.swap(x);
    }

    template <class T>
    static T run(const blas::dot<T>& op, const bound_op& o)
    {
        const auto x = vector(o.data(op.x), op.n, op.incx);
        const auto y = vector(o.data(op.y), op.n, op.incy);
        return opposed(op) ? y.dot(x.reverse()) : y.dot(x);
    }

    template <class T>
    static T run(const blas::nrm2<T>& op, const bound_op& o)
    {
        return vector(o.data(op.x), op.n, op.incx).stableNorm();
    }

    template <class T>
    static T run(const blas::asum<T>& op, const bound_op& o)
    {
        return vector(o.data(op.x), op.n, op.incx).cwiseAbs().sum();
    }

    template <class T>
    static std::uint64_t run(const blas::iamax<T>& op, const bound_op& o)
    {
        const auto x = vector(o.data(op.x), op.n, op.incx);
        Eigen::Index at = 0;
        if (op.incx < 0)
            x.reverse().cwiseAbs().maxCoeff(&at);
        else
            x.cwiseAbs().maxCoeff(&at);
        return static_cast<std::uint64_t>(at);
    }
};

} // namespace

void add_blas_level1(op_table& table)
{
    add_ops<level1>(table, blas::level1_for<float>{});
    add_ops<level1>(table, blas::level1_for<double>{});
}

} // namespace coaccel::host
