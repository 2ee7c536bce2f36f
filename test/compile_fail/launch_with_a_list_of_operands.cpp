// Each operand of a kernel is an argument of its own.
// expect: a kernel takes in\(buffer\), out\(buffer\), inout\(buffer\), numbers
#include <coaccel/ops/jit.hpp>

#include <array>

auto launch(const coaccel::jit::kernel& k, const std::array<coaccel::in<float>, 2>& x)
{
    return coaccel::jit::launch(k, {}, x);
}
