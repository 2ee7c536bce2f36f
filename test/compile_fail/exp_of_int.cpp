// Integers have no exponential function.
// expect: real_function
#include <coaccel/ops/prim.hpp>

coaccel::prim::unary<int> op{.x = {}, .y = {}, .what = coaccel::prim::real_function::exp};
