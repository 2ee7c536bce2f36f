#include "host/ops/prim_groups.hpp"
#include "prim/ordering.hpp"

#include <coaccel/ops/prim/order.hpp>

#include <algorithm>
#include <numeric>

namespace coaccel::host {
namespace {

/// Compares elements in an order.
template <class T>
struct before {
    std::uint64_t flip;

    explicit before(prim::sort_order o) noexcept : flip(o == prim::sort_order::ascending ? 0 : ~std::uint64_t(0)) {}

    std::uint64_t key(const T& x) const noexcept { return prim::key_of(x) ^ flip; }
    bool operator()(const T& a, const T& b) const noexcept { return key(a) < key(b); }
};

struct orders {
    // A heap of the indices of the first elements, whose last one is at the front.
    template <class T>
    static void run(const prim::top_k<T>& op, const bound_op& o)
    {
        const before<T> order(op.order);
        for (std::uint64_t row = 0; row < op.outer; ++row) {
            const T* x = o.data(op.x) + row * op.n;
            std::uint64_t* indices = o.data(op.indices) + row * op.k;
            std::uint64_t* const end = indices + op.k;
            const auto less = [&](std::uint64_t a, std::uint64_t b) {
                const std::uint64_t key_a = order.key(x[a]);
                const std::uint64_t key_b = order.key(x[b]);
                return key_a < key_b || (key_a == key_b && a < b);
            };
            std::iota(indices, end, std::uint64_t(0));
            std::make_heap(indices, end, less);
            for (std::uint64_t i = op.k; i < op.n; ++i)
                if (less(i, indices[0])) {
                    std::pop_heap(indices, end, less);
                    end[-1] = i;
                    std::push_heap(indices, end, less);
                }
            std::sort_heap(indices, end, less);
            T* values = o.data(op.values) + row * op.k;
            for (std::uint64_t i = 0; i < op.k; ++i)
                values[i] = x[indices[i]];
        }
    }

    template <class T>
    static void run(const prim::sort<T>& op, const bound_op& o)
    {
        T* y = std::copy_n(o.data(op.x), op.outer * op.n, o.data(op.y)) - op.outer * op.n;
        for (std::uint64_t row = 0; row < op.outer; ++row, y += op.n)
            std::stable_sort(y, y + op.n, before<T>(op.order));
    }

    // The result first has the indices of the keys.
    template <class T>
    static void run(const prim::sort_pairs<T>& op, const bound_op& o)
    {
        const before<T> order(op.order);
        for (std::uint64_t row = 0; row < op.outer; ++row) {
            const T* keys = o.data(op.keys) + row * op.n;
            const std::uint64_t* values = o.data(op.values) + row * op.n;
            T* sorted = o.data(op.sorted_keys) + row * op.n;
            std::uint64_t* indices = o.data(op.sorted_values) + row * op.n;
            std::iota(indices, indices + op.n, std::uint64_t(0));
            std::stable_sort(indices, indices + op.n,
                             [&](std::uint64_t a, std::uint64_t b) { return order(keys[a], keys[b]); });
            for (std::uint64_t i = 0; i < op.n; ++i) {
                sorted[i] = keys[indices[i]];
                indices[i] = values[indices[i]];
            }
        }
    }
};

template <class... Ts>
void add_orders(op_table& table, type_list<Ts...>)
{
    (add_ops<orders>(table, prim::orders_for<Ts>{}), ...);
}

} // namespace

void add_prim_order(op_table& table)
{
    add_orders(table, prim::floating_types{});
    add_orders(table, prim::integer_types{});
}

} // namespace coaccel::host
