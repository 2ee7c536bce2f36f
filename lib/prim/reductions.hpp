#ifndef COACCEL_PRIM_REDUCTIONS_HPP
#define COACCEL_PRIM_REDUCTIONS_HPP

// The functions of reductions.cuh as C++.

#include "prim/functions.hpp"
#include "prim/reductions.cuh"

#endif
