#include "host/ops/prim_groups.hpp"
#include "host/ops/prim_loops.hpp"
#include "prim/histogram_bins.hpp"

#include <coaccel/ops/prim/histogram.hpp>

#include <algorithm>

namespace coaccel::host {
namespace {

struct histograms {
    template <class T>
    static void run(const prim::histogram<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        std::uint64_t* counts = o.data(op.counts);
        std::fill_n(counts, op.bins, std::uint64_t(0));
        for (std::uint64_t i = 0; i < op.n; ++i) {
            const auto number = static_cast<double>(computed<T>(x[i]));
            const std::uint64_t bin = coaccel_prim::bin_of(number, op.low, op.high, op.bins);
            if (bin < op.bins)
                ++counts[bin];
        }
    }
};

template <class... Ts>
void add_histograms(op_table& table, type_list<Ts...>)
{
    (add_ops<histograms>(table, prim::histograms_for<Ts>{}), ...);
}

} // namespace

void add_prim_histogram(op_table& table)
{
    add_histograms(table, prim::floating_types{});
    add_histograms(table, prim::integer_types{});
}

} // namespace coaccel::host
