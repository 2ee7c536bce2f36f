// A list of operands has one dimension.
// expect: a list of operands is a std::array with one dimension
#include <coaccel/core/op.hpp>

struct blocks {
    std::array<std::array<coaccel::in<float>, 2>, 2> x;

    coaccel::error_code check() const noexcept { return {}; }
    COACCEL_OP(user, blocks, void, x)
};

const coaccel::op_info& info = coaccel::info_of<blocks>();
