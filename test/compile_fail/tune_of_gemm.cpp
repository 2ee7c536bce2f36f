// Only ops for which a library has several algorithms are tuned.
// expect: constraint
// expect: tunable_op
#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>

coaccel::tune<coaccel::blas::gemm<float>> measured{};
