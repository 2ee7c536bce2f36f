#ifndef COACCEL_CUDA_OP_LIBRARIES_HPP
#define COACCEL_CUDA_OP_LIBRARIES_HPP

#include "cuda/op_table.hpp"

#include <coaccel/core/op_list.hpp>

// The libraries of ops, each with its own folder.
#define COACCEL_CUDA_OP_LIBRARIES(X)                                                                                   \
    X(memory)                                                                                                          \
    X(blas)                                                                                                            \
    X(interop)                                                                                                         \
    X(jit)                                                                                                             \
    X(plan)                                                                                                            \
    X(prim)                                                                                                            \
    X(rand)                                                                                                            \
    X(user)

namespace coaccel::cuda {

/// A library of ops.
struct op_library {
    void (*add_ops)(op_table& table);
    /// Adds ops on `scratch`, 256 elements, that initialise everything that every later op of the library would
    /// otherwise have to wait for. Null: there is nothing to initialise.
    void (*add_warm_up)(op_list& ops, const ref<float>& scratch) = nullptr;
};

#define COACCEL_DECLARE(name) extern const op_library name##_ops;
COACCEL_CUDA_OP_LIBRARIES(COACCEL_DECLARE)
#undef COACCEL_DECLARE

/// The ops with which a standby prepares itself.
void add_warm_up(op_list& ops, const ref<float>& scratch);

} // namespace coaccel::cuda

#endif
