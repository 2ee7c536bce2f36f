#ifndef COACCEL_BENCH_CUDA_CLOCK_HPP
#define COACCEL_BENCH_CUDA_CLOCK_HPP

#include "row.hpp"

#include <chrono>
#include <ctime>
#include <vector>

namespace coaccel::bench {

using clock = std::chrono::steady_clock;

inline constexpr double to_ms = 1e3;
inline constexpr double to_us = 1e6;

inline double seconds_since(clock::time_point began)
{
    return std::chrono::duration<double>(clock::now() - began).count();
}

/// CPU time of all threads of the process, in seconds.
inline double cpu_seconds()
{
    timespec t{};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline pair scaled(pair p, double by)
{
    return {p.ours * by, p.theirs * by};
}

/// The seconds of each op.
struct samples {
    std::vector<double> ours;
    std::vector<double> theirs;

    pair at(double share) const { return {percentile(ours, share), percentile(theirs, share)}; }
    pair middle() const { return at(0.5); }
};

/// Alternates both functions, which append the time of each op to their argument; the first round is warm-up.
template <class Ours, class Theirs>
samples collect(int rounds, Ours ours, Theirs theirs)
{
    samples all;
    ours(all.ours);
    theirs(all.theirs);
    all = {};
    for (int i = 0; i < rounds; ++i) {
        ours(all.ours);
        theirs(all.theirs);
    }
    return all;
}

} // namespace coaccel::bench

#endif
