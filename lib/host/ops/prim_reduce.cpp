#include "host/ops/prim_folds.hpp"
#include "host/ops/prim_groups.hpp"
#include "prim/neutral.hpp"
#include "prim/reduction_shape.hpp"

#include <algorithm>
#include <optional>

namespace coaccel::host {
namespace {

/// Each result by itself.
template <class Fold, class T>
void reduce_rows(const prim::reduction_shape& l, const T* x, typename Fold::result* y)
{
    for_each_element(l.results, [&](std::uint64_t from, std::uint64_t to) {
        std::optional<typename Fold::state> all;
        std::uint64_t first = 0;
        for_each_row(l.elements, [&](const auto& at, std::uint64_t count, const auto& strides) {
            const auto row = fold_row<Fold>(x + from + at[0], first, count, strides[0]);
            all = all ? Fold::join(*all, row) : row;
            first += count;
        });
        y[to] = Fold::end(*all);
    });
}

/// Adjacent results at the same time, so that memory is read in order.
template <class Fold, class T>
void reduce_columns(const prim::reduction_shape& l, const T* x, typename Fold::result* y)
{
    constexpr std::uint64_t most = 256;
    for_each_row(l.results, [&](const auto& at, std::uint64_t count, const auto& strides) {
        for (std::uint64_t begin = 0; begin < count; begin += most) {
            const std::uint64_t n = std::min(most, count - begin);
            const T* from = x + at[0] + begin;
            std::array<typename Fold::state, most> all;
            std::uint64_t i = 0;
            for_each_element(l.elements, [&](std::uint64_t place) {
                if (i == 0)
                    for (std::uint64_t k = 0; k < n; ++k)
                        all[k] = Fold::start(from[place + k], 0);
                else
                    for (std::uint64_t k = 0; k < n; ++k)
                        all[k] = Fold::join(all[k], Fold::start(from[place + k], i));
                ++i;
            });
            for (std::uint64_t k = 0; k < n; ++k)
                y[at[1] + (begin + k) * strides[1]] = Fold::end(all[k]);
        }
    });
}

template <class Fold, class T>
void reduce_all(const prim::reduction_shape& l, const T* x, typename Fold::result* y)
{
    const auto stride = [](const auto& loops) { return loops.strides[0][loops.rank - 1]; };
    if (stride(l.results) == 1 && l.results.count > 1 && stride(l.elements) != 1)
        reduce_columns<Fold>(l, x, y);
    else
        reduce_rows<Fold>(l, x, y);
}

struct reductions {
    template <class T>
    static void run(const prim::reduce<T>& op, const bound_op& o)
    {
        with_reduction(op.what, [&]<class F>(F) {
            reduce_all<value_fold<F, T>>(prim::reduction_loops(op.shape, op.x.size()), o.data(op.x), o.data(op.y));
        });
    }

    template <class T>
    static void run(const prim::arg_reduce<T>& op, const bound_op& o)
    {
        const auto loops = prim::reduction_loops(op.shape, op.x.size());
        if (op.what == prim::arg_reduction::min)
            reduce_all<index_fold<coaccel_prim::arg_min, T>>(loops, o.data(op.x), o.data(op.y));
        else
            reduce_all<index_fold<coaccel_prim::arg_max, T>>(loops, o.data(op.x), o.data(op.y));
    }

    template <class T>
    static void run(const prim::segmented_reduce<T>& op, const bound_op& o)
    {
        with_reduction(op.what, [&]<class F>(F) {
            using fold = value_fold<F, T>;
            const std::uint64_t* offsets = o.data(op.offsets);
            for (std::uint64_t s = 0; s < op.segments; ++s) {
                const std::uint64_t begin = std::min(offsets[s], op.rows);
                const std::uint64_t end = std::min(offsets[s + 1], op.rows);
                const T* x = o.data(op.x) + begin * op.columns;
                T* y = o.data(op.y) + s * op.columns;
                if (begin >= end)
                    std::fill_n(y, op.columns, prim::neutral<T>(op.what));
                else
                    reduce_all<fold>(prim::reduction_loops(prim::layout<2>::matrix(end - begin, op.columns).row(1), 0),
                                     x, y);
            }
        });
    }
};

template <class... Ts>
void add_reductions(op_table& table, type_list<Ts...>)
{
    (add_ops<reductions>(table, prim::reductions_for<Ts>{}), ...);
}

} // namespace

void add_prim_reduce(op_table& table)
{
    add_reductions(table, prim::floating_types{});
    add_reductions(table, prim::integer_types{});
}

} // namespace coaccel::host
