// cuBLASLt has no epilogue for results in i32.
// expect: constraint
// expect: matmul_bias_element
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul_bias<std::int8_t, std::int32_t> product{};
