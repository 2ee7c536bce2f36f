#ifndef COACCEL_BENCH_CUDA_BREAKDOWN_HPP
#define COACCEL_BENCH_CUDA_BREAKDOWN_HPP

#include "clock.hpp"
#include "rows.hpp"

#include <cstdio>

namespace coaccel::bench {

inline void print(const char* what, double seconds)
{
    std::printf("  %-52s %10.3f us\n", what, seconds * to_us);
    std::fflush(stdout);
}

// The cost of each layer of coaccel, from the lowest up.
void print_contexts(const stage& s);
void print_our_ops(const stage& s);

} // namespace coaccel::bench

#endif
