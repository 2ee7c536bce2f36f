// Only factors of fp8 may have different types.
// expect: constraint
// expect: matmul_second
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<coaccel::half, float, coaccel::bfloat16> product{};
