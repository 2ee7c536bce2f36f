// An event of other code may be gone when a plan runs.
// expect: a plan has slots instead of allocations and copies
#include <coaccel/ops/interop.hpp>
#include <coaccel/plan/plan_builder.hpp>

void add(coaccel::plan_builder& b)
{
    b.add(coaccel::interop::wait_event<float>{});
}
