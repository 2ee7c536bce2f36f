#ifndef COACCEL_BENCH_ISOLATION_HPP
#define COACCEL_BENCH_ISOLATION_HPP

#include "one_device.hpp"
#include "row.hpp"

#include <functional>

// What the rows of devices in worker processes have in common, whatever the backend. Ours is the device in a worker,
// theirs the same device in this process.
namespace coaccel::bench {

inline constexpr std::chrono::nanoseconds spinning = std::chrono::milliseconds(1);
inline constexpr std::chrono::nanoseconds blocking{0};

/// The same device in a worker, which is replaced at once when it is lost, as often as it is.
device_options isolated(device_options o, std::chrono::nanoseconds spin = worker_options{}.spin);

/// Adds a row of this name and one of its 99th percentile. Both have a device `on`, and a function `start()` that gives
/// one that starts the op there.
template <class Player>
void round_trip_rows(rows& table, const std::string& name, Player& ours, Player& theirs, double goal,
                     const char* goal_text)
{
    constexpr int rounds = 10;
    constexpr int skip = 100;
    constexpr int count = 1000;
    const auto times_of = [](Player& p) {
        return [&p](std::vector<double>& times) {
            p.on.run(1, [&] { return time_each(p.start(), skip, count, &times); });
        };
    };
    const auto all = collect(rounds, times_of(ours), times_of(theirs));
    table.push_back(at_most_more(name, scaled(all.middle(), to_us), goal, "us p50", goal_text));
    table.push_back(without_goal(name + "_p99", scaled(all.at(0.99), to_us), "us p99"));
}

/// The same players, each with 64 coroutines that await one op after another.
template <class Player>
void depth_row(rows& table, Player& ours, Player& theirs)
{
    constexpr int rounds = 9;
    constexpr int coroutines = 64;
    constexpr int each = 400;
    const auto time_of = [](Player& p) {
        return [&p] {
            return p.on.run(coroutines, [&] { return await_each(p.start(), each); }) /
                   (static_cast<double>(coroutines) * each);
        };
    };
    const auto p = side_by_side(rounds, time_of(ours), time_of(theirs));
    table.push_back(at_most("worker_depth64", scaled(p, to_us), 1.5, "us/op", "<= 1.5"));
}

/// Adds the rows of copies of ordinary and of pinned memory, both ways.
void copy_rows(rows& table, const device_options& o);

struct recovery {
    const char* name;
    int standby;
    double goal_ms;
    const char* goal_text;
    int rounds;
    /// Enough for a standby to become ready.
    clock::duration between;
    /// Has the worker of a device die.
    std::function<void(one_device&)> fault;
};

/// Adds the row of the time from the loss of a worker, as its supervision sees it, to the end of the first op that
/// succeeds, and that of the first product after it beside the second.
void recovery_row(rows& table, const device_options& o, const recovery& r);

/// Adds the row of what idle devices in workers add to the memory of this process.
void memory_row(rows& table, const device_options& o);

} // namespace coaccel::bench

#endif
