#include "cuda/prim/kernel_names.hpp"
#include "cuda/prim/prim_ops.hpp"

namespace coaccel::cuda {
namespace {

constexpr const prim_group* groups[] = {&prim_casts,  &prim_elementwise, &prim_histograms, &prim_moves,
                                        &prim_orders, &prim_reductions,  &prim_rows,       &prim_runs,
                                        &prim_scans,  &prim_selections};

void add_all(op_table& table)
{
    for (const prim_group* g : groups)
        g->add_ops(table);
}

} // namespace

std::vector<std::string> prim_kernel_names()
{
    std::vector<std::string> all;
    for (const prim_group* g : groups)
        g->add_kernels(all);
    return all;
}

// No warm-up: each op, function and type has a kernel of its own.
const op_library prim_ops{.add_ops = add_all};

} // namespace coaccel::cuda
