// A plan returns no replies.
// expect: a plan returns no replies; use store_reply
#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>

void add(coaccel::plan_builder& b)
{
    b.add(coaccel::blas::dot<float>{});
}
