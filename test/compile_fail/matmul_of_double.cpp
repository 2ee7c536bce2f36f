// matmul exists for f32, f16, bf16 and i8 only: cuBLASLt has no epilogues for f64.
// expect: constraint
// expect: matmul_element<double>|matmul_element<T>.*T = double|'double' does not satisfy 'matmul_element'
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<double> product{};
