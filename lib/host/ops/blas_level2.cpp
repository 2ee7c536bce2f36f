#include "host/ops/eigen.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/ops/blas/level2_batched.hpp>

namespace coaccel::host {
namespace {

struct level2 {
    template <class T>
    static void run(const blas::gemv<T>& op, const bound_op& o)
    {
        product<T>(op, o.data(op.a), o.data(op.x), o.data(op.y));
    }

    template <class T>
    static void run(const blas::gemv_strided_batched<T>& op, const bound_op& o)
    {
        for (std::uint64_t i = 0; i < op.batch; ++i)
            product<T>(op, o.data(op.a) + i * op.stride_a, o.data(op.x) + i * op.stride_x,
                       o.data(op.y) + i * op.stride_y);
    }

    template <class T>
    static void run(const blas::ger<T>& op, const bound_op& o)
    {
        rank_one<T>(op, o, [](const auto& y) { return y.transpose(); });
    }

    template <class T>
    static void run(const blas::geru<T>& op, const bound_op& o)
    {
        rank_one<T>(op, o, [](const auto& y) { return y.transpose(); });
    }

    template <class T>
    static void run(const blas::gerc<T>& op, const bound_op& o)
    {
        rank_one<T>(op, o, [](const auto& y) { return y.adjoint(); });
    }

private:
    /// One product. Op is gemv, or gemv_strided_batched for each member of the batch.
    template <class T, class Op>
    static void product(const Op& op, const T* a, const T* x, T* y)
    {
        // An operand multiplied by zero is not read, because it may be uninitialized.
        if constexpr (blas::dense_element<T>) {
            Eigen::Matrix<T, Dynamic, 1> sum = Eigen::Matrix<T, Dynamic, 1>::Zero(static_cast<Index>(op.y_size()));
            if (op.alpha != T(0)) {
                const auto factor = packed(x, op.x_size(), op.incx);
                with_op(op.trans, matrix(a, op.m, op.n, op.lda),
                        [&](const auto& taken) { sum.noalias() = op.alpha * taken * factor; });
            }
            add_to(y, op.y_size(), op.incy, op.beta, sum);
        } else {
            Eigen::VectorXf sum = Eigen::VectorXf::Zero(static_cast<Index>(op.y_size()));
            if (op.alpha != 0) {
                const Eigen::VectorXf factor = logical<float>(x, op.x_size(), op.incx);
                with_op(op.trans, converted<float>(a, op.m, op.n, op.lda),
                        [&](const auto& taken) { sum.noalias() = op.alpha * taken * factor; });
            }
            for (std::uint64_t i = 0; i < op.y_size(); ++i) {
                T& to = y[place(i, op.y_size(), op.incy)];
                const float kept = op.beta == 0 ? 0 : op.beta * static_cast<float>(to);
                to = T(sum[static_cast<Index>(i)] + kept);
            }
        }
    }

    /// The place of element i, from the end if the increment is negative.
    static std::uint64_t place(std::uint64_t i, std::uint64_t n, std::int64_t inc)
    {
        return (inc < 0 ? n - 1 - i : i) * coaccel::detail::step_of(inc);
    }

    /// A contiguous copy in logical order and another type.
    template <class To, class T>
    static Eigen::Matrix<To, Dynamic, 1> logical(const T* data, std::uint64_t n, std::int64_t inc)
    {
        Eigen::Matrix<To, Dynamic, 1> copy(static_cast<Index>(n));
        for (std::uint64_t i = 0; i < n; ++i)
            copy[static_cast<Index>(i)] = static_cast<To>(data[place(i, n, inc)]);
        return copy;
    }

    template <class T, class Op, class Turned>
    static void rank_one(const Op& op, const bound_op& o, Turned turned)
    {
        auto a = matrix(o.data(op.a), op.m, op.n, op.lda);
        const auto x = packed(o.data(op.x), op.m, op.incx);
        const auto y = packed(o.data(op.y), op.n, op.incy);
        if (op.alpha != T(0))
            a.noalias() += op.alpha * x * turned(y);
    }
};

} // namespace

void add_blas_level2(op_table& table)
{
    const auto add_batched = [&table]<class T>() {
        add_ops<level2>(table, type_list<blas::gemv_strided_batched<T>>{});
    };
    blas::detail::for_each_dense([&table]<class T>() { add_ops<level2>(table, blas::level2_for<T>{}); });
    blas::detail::for_each_dense(add_batched);
    add_batched.template operator()<half>();
    add_batched.template operator()<bfloat16>();
}

} // namespace coaccel::host
