// matmul exists for f32, f16, bf16, i8 and fp8 only: cuBLASLt has no epilogues for f64.
// expect: constraint
// expect: matmul_element<double>|matmul_element<[AT]>.*[AT] = double|'double' does not satisfy 'matmul_element'
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<double> product{};
