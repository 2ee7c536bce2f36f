#include "host/ops/prim_groups.hpp"
#include "prim/ordering.hpp"

#include <coaccel/ops/prim/compact.hpp>

#include <algorithm>

namespace coaccel::host {
namespace {

/// A result with a limited number of elements.
template <class T>
struct bounded {
    T* y;
    std::uint64_t room;

    void put(std::uint64_t at, const T& x) const
    {
        if (at < room)
            y[at] = x;
    }

    void clear_from(std::uint64_t at) const
    {
        if (at < room)
            std::fill(y + at, y + room, T());
    }
};

/// Calls `run(first, end)` for the places of each run of equal elements, and returns how many there are.
template <class T, class Run>
std::uint64_t for_each_run(const T* x, std::uint64_t n, const Run& run)
{
    std::uint64_t count = 0;
    for (std::uint64_t first = 0; first < n; ++count) {
        const std::uint64_t key = prim::key_of(x[first]);
        std::uint64_t end = first + 1;
        while (end < n && prim::key_of(x[end]) == key)
            ++end;
        run(count, first, end);
        first = end;
    }
    return count;
}

struct compactions {
    template <class T>
    static void run(const prim::select<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        const std::uint8_t* mask = o.data(op.mask);
        const bounded<T> y{o.data(op.y), op.y.size()};
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < op.n; ++i)
            if (mask[i] != 0)
                y.put(count++, x[i]);
        y.clear_from(count);
        *o.data(op.count) = count;
    }

    template <class T>
    static void run(const prim::unique<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        const bounded<T> y{o.data(op.y), op.y.size()};
        const std::uint64_t count =
            for_each_run(x, op.n, [&](std::uint64_t at, std::uint64_t first, std::uint64_t) { y.put(at, x[first]); });
        y.clear_from(count);
        *o.data(op.count) = count;
    }

    template <class T>
    static void run(const prim::run_length<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        const bounded<T> values{o.data(op.values), op.values.size()};
        const bounded<std::uint64_t> lengths{o.data(op.lengths), op.lengths.size()};
        const std::uint64_t count =
            for_each_run(x, op.n, [&](std::uint64_t at, std::uint64_t first, std::uint64_t end) {
                values.put(at, x[first]);
                lengths.put(at, end - first);
            });
        values.clear_from(count);
        lengths.clear_from(count);
        *o.data(op.count) = count;
    }
};

template <class... Ts>
void add_selections(op_table& table, type_list<Ts...>)
{
    (add_ops<compactions>(table, prim::selections_for<Ts>{}), ...);
}

template <class... Ts>
void add_runs(op_table& table, type_list<Ts...>)
{
    (add_ops<compactions>(table, prim::runs_for<Ts>{}), ...);
}

} // namespace

void add_prim_compact(op_table& table)
{
    add_selections(table, element_types{});
    add_runs(table, prim::floating_types{});
    add_runs(table, prim::integer_types{});
}

} // namespace coaccel::host
