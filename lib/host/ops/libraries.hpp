#ifndef COACCEL_HOST_OPS_LIBRARIES_HPP
#define COACCEL_HOST_OPS_LIBRARIES_HPP

#include "host/op_table.hpp"

// The sources of ops in this folder: each defines a function that adds its ops to the table.
#define COACCEL_HOST_LIBRARIES(X)                                                                                      \
    X(memory)                                                                                                          \
    X(blas_level1)                                                                                                     \
    X(blas_level2)                                                                                                     \
    X(blas_level2_symmetric)                                                                                           \
    X(blas_level2_triangular)                                                                                          \
    X(blas_level3)                                                                                                     \
    X(blas_level3_elementwise)                                                                                         \
    X(blas_level3_symmetric)                                                                                           \
    X(blas_level3_triangular)                                                                                          \
    X(blas_lu_batched)                                                                                                 \
    X(blas_qr_batched)                                                                                                 \
    X(blas_matmul)                                                                                                     \
    X(jit)                                                                                                             \
    X(plan)                                                                                                            \
    X(prim)                                                                                                            \
    X(rand)                                                                                                            \
    X(user)

namespace coaccel::host {

#define COACCEL_DECLARE(name) void add_##name(op_table& table);
COACCEL_HOST_LIBRARIES(COACCEL_DECLARE)
#undef COACCEL_DECLARE

} // namespace coaccel::host

#endif
