// gemm exists for f32, f64, f16 and bf16 only.
// expect: constraint
// expect: gemm_element<int>|gemm_element<T>.*T = int|'int' does not satisfy 'gemm_element'
#include <coaccel/ops/blas.hpp>

coaccel::blas::gemm<int> product{};
