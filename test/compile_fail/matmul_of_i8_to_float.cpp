// Products of i8 have results in i32.
// expect: constraint
// expect: matmul_result
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<std::int8_t, float> product{};
