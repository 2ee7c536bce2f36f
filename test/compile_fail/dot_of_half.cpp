// BLAS levels 1 and 2 exist for f32 and f64 only.
// expect: constraint
// expect: real<T>|does not satisfy 'real'
#include <coaccel/ops/blas.hpp>

coaccel::blas::dot<coaccel::half> product{};
