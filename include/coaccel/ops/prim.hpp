#ifndef COACCEL_OPS_PRIM_HPP
#define COACCEL_OPS_PRIM_HPP

#include <coaccel/ops/prim/elementwise.hpp>
#include <coaccel/ops/prim/layout.hpp>
#include <coaccel/ops/prim/rows.hpp>

#endif
