#include "host/op_table.hpp"

#include "host/ops/libraries.hpp"

namespace coaccel::host {

const op_table& all_ops()
{
    static const op_table table = [] {
        op_table t;
#define COACCEL_ADD(name) add_##name(t);
        COACCEL_HOST_LIBRARIES(COACCEL_ADD)
#undef COACCEL_ADD
        return t;
    }();
    return table;
}

} // namespace coaccel::host
