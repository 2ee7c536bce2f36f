#include "host/ops/prim_groups.hpp"
#include "host/ops/prim_loops.hpp"
#include "prim/functions.hpp"

#include <coaccel/ops/prim/rows.hpp>

#include <cmath>
#include <limits>

namespace coaccel::host {
namespace {

template <class Use>
void with_activation(prim::activation a, const Use& use)
{
    using prim::activation;
    switch (a) {
    case activation::none: return use(coaccel_prim::real_none{});
    case activation::relu: return use(coaccel_prim::real_relu{});
    case activation::gelu: return use(coaccel_prim::real_gelu{});
    case activation::silu: return use(coaccel_prim::real_silu{});
    case activation::tanh: return use(coaccel_prim::real_tanh{});
    case activation::sigmoid: return use(coaccel_prim::real_sigmoid{});
    }
}

/// Calls `value(x, most, sum)` for each element of each row along the axis.
template <class Op, class T, class Value>
void softmax_rows(const Op& op, const T* x, T* y, Value value)
{
    using C = computed<T>;
    for (std::uint64_t o = 0; o < op.outer; ++o)
        for (std::uint64_t i = 0; i < op.inner; ++i) {
            const std::uint64_t first = o * op.n * op.inner + i;
            C most = -std::numeric_limits<C>::infinity();
            for (std::uint64_t k = 0; k < op.n; ++k)
                most = coaccel_prim::greater(most, C(x[first + k * op.inner]));
            double sum = 0;
            for (std::uint64_t k = 0; k < op.n; ++k)
                sum += static_cast<double>(std::exp(C(x[first + k * op.inner]) - most));
            for (std::uint64_t k = 0; k < op.n; ++k) {
                const std::uint64_t at = first + k * op.inner;
                y[at] = T(static_cast<C>(value(C(x[at]), most, sum)));
            }
        }
}

struct rows {
    template <class T>
    static void run(const prim::bias_activation<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* x = o.data(op.x);
        const T* bias = o.data(op.bias);
        T* y = o.data(op.y);
        with_activation(op.what, [&]<class F>(F) {
            for_each_element(loops_of(op.shape(), op.y.size()), [=](std::uint64_t i, std::uint64_t j, std::uint64_t k) {
                y[k] = T(F::of(C(x[i]) + C(bias[j])));
            });
        });
    }

    template <class T>
    static void run(const prim::softmax<T>& op, const bound_op& o)
    {
        softmax_rows(op, o.data(op.x), o.data(op.y),
                     [](auto x, auto most, double sum) { return static_cast<double>(std::exp(x - most)) / sum; });
    }

    template <class T>
    static void run(const prim::log_softmax<T>& op, const bound_op& o)
    {
        softmax_rows(op, o.data(op.x), o.data(op.y), [](auto x, auto most, double sum) {
            return static_cast<double>(x) - static_cast<double>(most) - std::log(sum);
        });
    }

    template <class T>
    static void run(const prim::layer_norm<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* scale = o.data(op.scale);
        const T* shift = o.data(op.shift);
        const auto n = static_cast<double>(op.columns);
        for (std::uint64_t r = 0; r < op.rows; ++r) {
            const T* x = o.data(op.x) + r * op.columns;
            T* y = o.data(op.y) + r * op.columns;
            double sum = 0;
            for (std::uint64_t k = 0; k < op.columns; ++k)
                sum += static_cast<double>(C(x[k]));
            const double mean = sum / n;
            sum = 0;
            for (std::uint64_t k = 0; k < op.columns; ++k) {
                const double distance = static_cast<double>(C(x[k])) - mean;
                sum += distance * distance;
            }
            const double factor = 1 / std::sqrt(sum / n + op.epsilon);
            for (std::uint64_t k = 0; k < op.columns; ++k)
                y[k] =
                    T(static_cast<C>((static_cast<double>(C(x[k])) - mean) * factor * static_cast<double>(C(scale[k])) +
                                     static_cast<double>(C(shift[k]))));
        }
    }

    template <class T>
    static void run(const prim::rms_norm<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* scale = o.data(op.scale);
        for (std::uint64_t r = 0; r < op.rows; ++r) {
            const T* x = o.data(op.x) + r * op.columns;
            T* y = o.data(op.y) + r * op.columns;
            double sum = 0;
            for (std::uint64_t k = 0; k < op.columns; ++k)
                sum += static_cast<double>(C(x[k])) * static_cast<double>(C(x[k]));
            const double factor = 1 / std::sqrt(sum / static_cast<double>(op.columns) + op.epsilon);
            for (std::uint64_t k = 0; k < op.columns; ++k)
                y[k] = T(static_cast<C>(static_cast<double>(C(x[k])) * factor * static_cast<double>(C(scale[k]))));
        }
    }
};

template <class... Ts>
void add_rows(op_table& table, type_list<Ts...>)
{
    (add_ops<rows>(table, prim::rows_for<Ts>{}), ...);
}

} // namespace

void add_prim_rows(op_table& table)
{
    add_rows(table, prim::floating_types{});
}

} // namespace coaccel::host
