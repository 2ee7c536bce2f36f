#ifndef COACCEL_OPS_BLAS_HPP
#define COACCEL_OPS_BLAS_HPP

// All of BLAS here is column-major, as in the Fortran original and in cuBLAS: element (i, j) of a
// matrix with leading dimension ld is at index i + j * ld.

#include <coaccel/ops/blas_level1.hpp>
#include <coaccel/ops/blas_level2.hpp>
#include <coaccel/ops/blas_level3.hpp>

#endif
