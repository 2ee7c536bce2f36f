// The caller's memory may be gone when a plan runs.
// expect: the caller's memory is not kept for the ops of a plan
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/plan/plan_builder.hpp>

void add(coaccel::plan_builder& b)
{
    b.add(coaccel::detail::write_op<float>{});
}
