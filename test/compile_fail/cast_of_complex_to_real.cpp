// A complex number is not converted to a real one.
// expect: constraint
// expect: castable
#include <coaccel/ops/prim.hpp>

coaccel::prim::cast<std::complex<float>, float> op{};
