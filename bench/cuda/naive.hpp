#ifndef COACCEL_BENCH_CUDA_NAIVE_HPP
#define COACCEL_BENCH_CUDA_NAIVE_HPP

#include "raw.hpp"

#include <vector>

namespace coaccel::bench {

/// The simplest implementation: after every kernel a host function on its stream posts to an io_context, whose thread
/// then launches the next kernel. Runs `at_a_time` such chains and appends the seconds of each op.
///
/// Returns the average seconds per op.
double naive_time(const raw_gpu& raw, int at_a_time, int ops_each, std::vector<double>& times);

} // namespace coaccel::bench

#endif
