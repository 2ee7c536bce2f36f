// An optional operand accepts only buffers of its own element type.
// expect: cannot convert|no matching function|no viable (conversion|overloaded)|no match for
#include <coaccel/ops/blas.hpp>

void add_bias(coaccel::blas::matmul<float>& product, const coaccel::buffer<double>& x)
{
    product.bias = x;
}
