// Only a plan has values for parameters.
// expect: no matching (member )?function
#include <coaccel/coaccel.hpp>

void launch(coaccel::device& gpu, const coaccel::jit::kernel& k, const coaccel::plan_parameter<float>& by)
{
    auto operation = gpu.async_exec(coaccel::jit::launch(k, {}, by));
}
