#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level2.hpp>

namespace coaccel::host {
namespace {

// A contiguous copy in logical order. Its cost is negligible next to the matrix, and Eigen's kernels require contiguous
// vectors.
template <class T>
Eigen::Matrix<T, Dynamic, 1> packed(const T* data, std::uint64_t n, std::int64_t inc)
{
    const auto x = vector(data, n, inc);
    if (inc < 0)
        return x.reverse();
    return x;
}

struct level2 {
    template <class T>
    static void run(const blas::gemv<T>& op, const bound_op& o)
    {
        const auto a = matrix(o.data(op.a), op.m, op.n, op.lda);
        const auto x = packed(o.data(op.x), op.x_size(), op.incx);
        Eigen::Matrix<T, Dynamic, 1> product(static_cast<Index>(op.y_size()));
        // An operand multiplied by zero is not read, because it may be uninitialized.
        if (op.alpha == T(0))
            product.setZero();
        else if (op.trans == blas::transpose::no)
            product.noalias() = op.alpha * a * x;
        else
            product.noalias() = op.alpha * a.transpose() * x;
        if (op.incy < 0)
            product.reverseInPlace();
        auto y = vector(o.data(op.y), op.y_size(), op.incy);
        if (op.beta == T(0))
            y = product;
        else
            y = op.beta * y + product;
    }

    template <class T>
    static void run(const blas::ger<T>& op, const bound_op& o)
    {
        auto a = matrix(o.data(op.a), op.m, op.n, op.lda);
        const auto x = packed(o.data(op.x), op.m, op.incx);
        const auto y = packed(o.data(op.y), op.n, op.incy);
        if (op.alpha != T(0))
            a.noalias() += op.alpha * x * y.transpose();
    }
};

} // namespace

void add_blas_level2(op_table& table)
{
    add_ops<level2>(table, blas::level2_for<float>{});
    add_ops<level2>(table, blas::level2_for<double>{});
}

} // namespace coaccel::host
