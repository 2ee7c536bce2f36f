#include "host/ops/prim_groups.hpp"
#include "host/ops/prim_loops.hpp"
#include "prim/pad_loops.hpp"

#include <coaccel/ops/prim/move.hpp>

#include <algorithm>

namespace coaccel::host {
namespace {

/// The elements of each row of y: `value`, and the row of x between.
template <class T>
void pad_rows(const prim::pad_loops& l, const T* x, T* y, T value)
{
    std::fill_n(y, l.count, value);
    prim::layout<2> inside;
    inside.rank = l.rank;
    inside.dims = l.dims;
    std::uint64_t from = 1;
    std::uint64_t to = 1;
    std::uint64_t first = 0;
    for (std::size_t d = l.rank; d-- > 0;) {
        inside.strides[0][d] = from;
        inside.strides[1][d] = to;
        first += l.before[d] * to;
        from *= l.dims[d];
        to *= l.result[d];
    }
    for_each_element(prim::loops_of(inside, 0), [=](std::uint64_t i, std::uint64_t j) { y[first + j] = x[i]; });
}

struct moves {
    template <class T>
    static void run(const prim::gather<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        const std::uint64_t* indices = o.data(op.indices);
        T* y = o.data(op.y);
        for (std::uint64_t outer = 0; outer < op.outer; ++outer)
            for (std::uint64_t j = 0; j < op.m; ++j, y += op.inner)
                if (indices[j] < op.n)
                    std::copy_n(x + (outer * op.n + indices[j]) * op.inner, op.inner, y);
                else
                    std::fill_n(y, op.inner, T());
    }

    // In the order of the indices, so that the last one of equal indices remains.
    template <class T>
    static void run(const prim::scatter<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        const std::uint64_t* indices = o.data(op.indices);
        T* y = o.data(op.y);
        for (std::uint64_t outer = 0; outer < op.outer; ++outer)
            for (std::uint64_t j = 0; j < op.m; ++j, x += op.inner)
                if (indices[j] < op.n)
                    std::copy_n(x, op.inner, y + (outer * op.n + indices[j]) * op.inner);
    }

    template <class T>
    static void run(const prim::concat<T>& op, const bound_op& o)
    {
        const T* a = o.data(op.a);
        const T* b = o.data(op.b);
        T* y = o.data(op.y);
        for (std::uint64_t outer = 0; outer < op.outer; ++outer) {
            y = std::copy_n(a + outer * op.n * op.inner, op.n * op.inner, y);
            y = std::copy_n(b + outer * op.m * op.inner, op.m * op.inner, y);
        }
    }

    template <class T>
    static void run(const prim::pad<T>& op, const bound_op& o)
    {
        pad_rows(prim::loops_of(op), o.data(op.x), o.data(op.y), op.value);
    }

    template <class T>
    static void run(const prim::transpose<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        T* y = o.data(op.y);
        for_each_element(prim::loops_of(op.shape(), 0), [=](std::uint64_t i, std::uint64_t j) { y[j] = x[i]; });
    }
};

template <class... Ts>
void add_moves(op_table& table, type_list<Ts...>)
{
    (add_ops<moves>(table, prim::moves_for<Ts>{}), ...);
}

} // namespace

void add_prim_move(op_table& table)
{
    add_moves(table, element_types{});
}

} // namespace coaccel::host
