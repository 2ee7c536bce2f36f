// A kernel has all its operands.
// expect: a kernel takes in\(buffer\), out\(buffer\), inout\(buffer\), numbers
#include <coaccel/ops/jit.hpp>

auto launch(const coaccel::jit::kernel& k, coaccel::optional_in<float> x)
{
    return coaccel::jit::launch(k, {}, x);
}
