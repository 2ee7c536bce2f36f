#ifndef COACCEL_PRIM_HISTOGRAM_BINS_HPP
#define COACCEL_PRIM_HISTOGRAM_BINS_HPP

// The functions of histogram_bins.cuh as C++.

#include "prim/functions.hpp"
#include "prim/histogram_bins.cuh"

#endif
