// An operand accepts only buffers of its own element type.
// expect: could not convert|no viable conversion|conversion from .* requested
#include <coaccel/ops/blas.hpp>

coaccel::blas::scal<float> scale(const coaccel::buffer<double>& x)
{
    return {.x = x, .n = 1};
}
