#ifndef COACCEL_OPS_BLAS_HPP
#define COACCEL_OPS_BLAS_HPP

// All BLAS ops are column-major, as in Fortran BLAS and cuBLAS: element (i, j) of a matrix with leading dimension ld is
// at index i + j * ld.

#include <coaccel/ops/blas/level1.hpp>
#include <coaccel/ops/blas/level2.hpp>
#include <coaccel/ops/blas/level3.hpp>

#endif
