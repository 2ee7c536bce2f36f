// The result of matmul has the type of the factors, or is in f32.
// expect: constraint
// expect: matmul_result
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<coaccel::half, coaccel::bfloat16> product{};
