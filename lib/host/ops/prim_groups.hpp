#ifndef COACCEL_HOST_OPS_PRIM_GROUPS_HPP
#define COACCEL_HOST_OPS_PRIM_GROUPS_HPP

#include "host/op_table.hpp"

// The sources of the ops of `prim`: each defines a function that adds its ops to the table.
#define COACCEL_HOST_PRIM_GROUPS(X)                                                                                    \
    X(casts)                                                                                                           \
    X(compact)                                                                                                         \
    X(elementwise)                                                                                                     \
    X(histogram)                                                                                                       \
    X(move)                                                                                                            \
    X(order)                                                                                                           \
    X(reduce)                                                                                                          \
    X(rows)                                                                                                            \
    X(scan)

namespace coaccel::host {

#define COACCEL_DECLARE(name) void add_prim_##name(op_table& table);
COACCEL_HOST_PRIM_GROUPS(COACCEL_DECLARE)
#undef COACCEL_DECLARE

} // namespace coaccel::host

#endif
