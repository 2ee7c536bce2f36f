// cuBLASLt has no products of two factors of e5m2.
// expect: constraint
// expect: matmul_second
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<coaccel::float8_e5m2, float, coaccel::float8_e5m2> product{};
