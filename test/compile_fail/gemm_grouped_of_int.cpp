// Lists of products exist for the types of gemm.
// expect: constraint
// expect: gemm_element<int>|gemm_element<T>.*T = int|'int' does not satisfy 'gemm_element'
#include <coaccel/ops/blas.hpp>

coaccel::blas::gemm_grouped<int> products{};
