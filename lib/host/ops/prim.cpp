#include "host/ops/libraries.hpp"
#include "host/ops/prim_groups.hpp"

namespace coaccel::host {

void add_prim(op_table& table)
{
#define COACCEL_ADD(name) add_prim_##name(table);
    COACCEL_HOST_PRIM_GROUPS(COACCEL_ADD)
#undef COACCEL_ADD
}

} // namespace coaccel::host
