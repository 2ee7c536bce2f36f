// The factors of gemm_grouped differ between its products, and cannot be parameters.
// expect: no matching (member )?function
#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>

void add(coaccel::plan_builder& b)
{
    using grouped = coaccel::blas::gemm_grouped<float>;
    b.add(grouped{}, bind(&grouped::alpha, b.parameter<float>()));
}
