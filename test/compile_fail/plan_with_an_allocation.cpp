// A plan has slots.
// expect: a plan has slots instead of allocations and copies
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/plan/plan_builder.hpp>

void add(coaccel::plan_builder& b)
{
    b.add(coaccel::detail::allocate_op{});
}
