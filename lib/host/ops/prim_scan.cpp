#include "host/ops/prim_folds.hpp"
#include "host/ops/prim_groups.hpp"
#include "prim/neutral.hpp"

#include <coaccel/ops/prim/scan.hpp>

namespace coaccel::host {
namespace {

struct scans {
    template <class T>
    static void run(const prim::scan<T>& op, const bound_op& o)
    {
        const T* x = o.data(op.x);
        T* y = o.data(op.y);
        const bool exclusive = op.range == prim::scan_range::exclusive;
        with_reduction(op.what, [&]<class F>(F) {
            using fold = value_fold<F, T>;
            for (std::uint64_t row = 0; row < op.outer * op.inner; ++row) {
                const std::uint64_t first = row / op.inner * op.n * op.inner + row % op.inner;
                auto all = fold::start(prim::neutral<T>(op.what), 0);
                for (std::uint64_t k = 0; k < op.n; ++k) {
                    const std::uint64_t at = first + k * op.inner;
                    const auto next = fold::join(all, fold::start(x[at], k));
                    y[at] = fold::end(exclusive ? all : next);
                    all = next;
                }
            }
        });
    }
};

template <class... Ts>
void add_scans(op_table& table, type_list<Ts...>)
{
    (add_ops<scans>(table, prim::scans_for<Ts>{}), ...);
}

} // namespace

void add_prim_scan(op_table& table)
{
    add_scans(table, prim::floating_types{});
    add_scans(table, prim::integer_types{});
}

} // namespace coaccel::host
