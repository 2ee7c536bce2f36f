#ifndef COACCEL_BENCH_CUDA_OP_TIMES_HPP
#define COACCEL_BENCH_CUDA_OP_TIMES_HPP

#include "ours.hpp"
#include "raw.hpp"

#include <coaccel/core/op.hpp>

#include <string>
#include <utility>

namespace coaccel::bench {

/// How often an op is measured: alternating rounds of both sides, each with `count` ops after `skip` that do not count.
struct repetition {
    int rounds;
    int count;
    int skip = 2;
};

/// An op of about 0.1 ms or more. Short rounds, because the GPU clock drifts under load.
inline constexpr repetition of_large_op{.rounds = 15, .count = 12};
/// An op of a few microseconds.
inline constexpr repetition of_small_op{.rounds = 10, .count = 500, .skip = 20};

/// The seconds of awaited ops, one after another, against those of `theirs()`, a call of a library on the stream of
/// `raw`, with a wait after each.
template <op Op, class Theirs>
samples awaited_against(our_gpu& ours, const Op& o, const raw_gpu& raw, const repetition& how, Theirs theirs)
{
    const auto start = [gpu = &ours.gpu(), op = &o] { return gpu->async_exec(*op); };
    return collect(
        how.rounds, [&](auto& times) { ours.run(1, [&] { return time_each(start, how.skip, how.count, &times); }); },
        [&](auto& times) {
            const auto inside = raw.enter();
            for (int i = 0; i < how.skip + how.count; ++i) {
                const auto began = clock::now();
                theirs();
                raw.synchronize();
                const double took = seconds_since(began);
                if (i >= how.skip)
                    times.push_back(took);
            }
        });
}

/// Adds the row of a large op, in milliseconds: ours takes at most `goal` times as long.
template <op Op, class Theirs>
void add_large_op(rows& table, std::string name, our_gpu& ours, const Op& o, const raw_gpu& raw, double goal,
                  std::string goal_text, Theirs theirs)
{
    const auto all = awaited_against(ours, o, raw, of_large_op, theirs);
    table.push_back(at_most(std::move(name), scaled(all.middle(), to_ms), goal, "ms p50", std::move(goal_text)));
}

/// Adds the row of a small op: ours takes at most 3 us more.
template <op Op, class Theirs>
void add_small_op(rows& table, std::string name, our_gpu& ours, const Op& o, const raw_gpu& raw, Theirs theirs)
{
    const auto all = awaited_against(ours, o, raw, of_small_op, theirs);
    table.push_back(at_most_more(std::move(name), scaled(all.middle(), to_us), 3, "us p50", "<= +3 us"));
}

} // namespace coaccel::bench

#endif
