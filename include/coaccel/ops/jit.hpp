#ifndef COACCEL_OPS_JIT_HPP
#define COACCEL_OPS_JIT_HPP

// Kernels from source: compile_options say what to compile, kernel is what comes of it, launch runs it, occupancy finds
// a shape for it.
#include <coaccel/ops/jit_compile.hpp>
#include <coaccel/ops/jit_kernel.hpp>
#include <coaccel/ops/jit_launch.hpp>
#include <coaccel/ops/jit_occupancy.hpp>

#endif
