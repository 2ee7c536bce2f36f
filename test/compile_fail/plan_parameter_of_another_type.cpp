// The type of a parameter is that of the field.
// expect: no matching (member )?function
#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>

void add(coaccel::plan_builder& b)
{
    using gemv = coaccel::blas::gemv<float>;
    b.add(gemv{}, bind(&gemv::alpha, b.parameter<double>()));
}
