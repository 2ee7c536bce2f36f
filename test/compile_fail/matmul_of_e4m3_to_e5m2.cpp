// A result of e5m2 needs a factor of e5m2.
// expect: constraint
// expect: matmul_result
#include <coaccel/ops/blas.hpp>

coaccel::blas::matmul<coaccel::float8_e4m3, coaccel::float8_e5m2> product{};
