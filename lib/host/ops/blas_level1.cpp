#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level1_rotation.hpp>

#include <cmath>

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
    static void run(const blas::rot<T>& op, const bound_op& o)
    {
        auto x = vector(o.data(op.x), op.n, op.incx);
        auto y = vector(o.data(op.y), op.n, op.incy);
        const Index last = x.size() - 1;
        for (Index i = 0; i <= last; ++i) {
            T& first = x[i];
            T& second = y[opposed(op) ? last - i : i];
            const T before = first;
            first = op.c * before + op.s * second;
            second = op.c * second - T(Eigen::numext::conj(op.s)) * before;
        }
    }

    template <class T>
    static void run(const blas::rotg<T>& op, const bound_op& o)
    {
        rotate(*o.data(op.a), *o.data(op.b), *o.data(op.c), *o.data(op.s));
    }

    template <class T>
    static T run(const blas::dot<T>& op, const bound_op& o)
    {
        return inner_product<T>(op, o, [](const auto& x, const auto& y) { return x.dot(y); });
    }

    template <class T>
    static T run(const blas::dotu<T>& op, const bound_op& o)
    {
        return inner_product<T>(op, o, [](const auto& x, const auto& y) { return x.cwiseProduct(y).sum(); });
    }

    template <class T>
    static T run(const blas::dotc<T>& op, const bound_op& o)
    {
        return inner_product<T>(op, o, [](const auto& x, const auto& y) { return x.dot(y); });
    }

    template <class T>
    static blas::real_part<T> run(const blas::nrm2<T>& op, const bound_op& o)
    {
        return vector(o.data(op.x), op.n, op.incx).stableNorm();
    }

    template <class T>
    static blas::real_part<T> run(const blas::asum<T>& op, const bound_op& o)
    {
        return magnitudes(vector(o.data(op.x), op.n, op.incx)).sum();
    }

    template <class T>
    static std::uint64_t run(const blas::iamax<T>& op, const bound_op& o)
    {
        return search(op, o, [](const auto& x, Index& at) { x.maxCoeff(&at); });
    }

    template <class T>
    static std::uint64_t run(const blas::iamin<T>& op, const bound_op& o)
    {
        return search(op, o, [](const auto& x, Index& at) { x.minCoeff(&at); });
    }

private:
    template <class T, class Op, class Product>
    static T inner_product(const Op& op, const bound_op& o, Product product)
    {
        const auto x = vector(o.data(op.x), op.n, op.incx);
        const auto y = vector(o.data(op.y), op.n, op.incy);
        return opposed(op) ? T(product(x, y.reverse())) : T(product(x, y));
    }

    /// |re| + |im| of each element.
    template <class Vector>
    static auto magnitudes(const Vector& x)
    {
        using T = typename Vector::Scalar;
        if constexpr (blas::complex_element<T>)
            return x.unaryExpr([](const T& value) { return std::abs(value.real()) + std::abs(value.imag()); });
        else
            return x.cwiseAbs();
    }

    template <class Op, class Find>
    static std::uint64_t search(const Op& op, const bound_op& o, Find find)
    {
        const auto x = vector(o.data(op.x), op.n, op.incx);
        Index at = 0;
        if (op.incx < 0)
            find(magnitudes(x.reverse()), at);
        else
            find(magnitudes(x), at);
        return static_cast<std::uint64_t>(at);
    }

    /// As in BLAS, with the sign of the larger element.
    template <blas::real T>
    static void rotate(T& a, T& b, T& c, T& s)
    {
        const T r = std::copysign(std::hypot(a, b), std::abs(a) > std::abs(b) ? a : b);
        if (r == 0) {
            c = 1;
            s = a = b = 0;
            return;
        }
        c = a / r;
        s = b / r;
        if (std::abs(a) > std::abs(b))
            b = s;
        else
            b = c != 0 ? 1 / c : T(1);
        a = r;
    }

    template <blas::complex_element T>
    static void rotate(T& a, const T& b, typename T::value_type& c, T& s)
    {
        const auto magnitude = std::abs(a);
        if (magnitude == 0) {
            c = 0;
            s = 1;
            a = b;
            return;
        }
        const auto norm = std::hypot(magnitude, std::abs(b));
        const T direction = a / magnitude;
        c = magnitude / norm;
        s = direction * std::conj(b) / norm;
        a = direction * norm;
    }
};

} // namespace

void add_blas_level1(op_table& table)
{
    blas::detail::for_each_dense([&table]<class T>() {
        add_ops<level1>(table, blas::level1_for<T>{});
        add_ops<level1>(table, blas::level1_rotation_for<T>{});
    });
}

} // namespace coaccel::host
