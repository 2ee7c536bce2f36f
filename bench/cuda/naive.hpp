#ifndef COACCEL_BENCH_CUDA_NAIVE_HPP
#define COACCEL_BENCH_CUDA_NAIVE_HPP

#include "raw.hpp"

#include <vector>

namespace coaccel::bench {

/// What comes to mind first: behind every kernel, on its stream, a host function that posts to an io_context, whose
/// thread then launches the next. So many at a time; the seconds of each op are appended.
///
/// Returns the seconds per op of them all.
double naive_time(const raw_gpu& raw, int at_a_time, int ops_each, std::vector<double>& times);

} // namespace coaccel::bench

#endif
