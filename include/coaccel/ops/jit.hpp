#ifndef COACCEL_OPS_JIT_HPP
#define COACCEL_OPS_JIT_HPP

// Kernels compiled at run time: compile_options describe the compilation, kernel is its result, launch runs it, and
// occupancy suggests a launch shape.
#include <coaccel/ops/jit/compile.hpp>
#include <coaccel/ops/jit/kernel.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

#endif
