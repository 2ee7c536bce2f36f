#ifndef COACCEL_BENCH_ISOLATION_HPP
#define COACCEL_BENCH_ISOLATION_HPP

#include "one_device.hpp"
#include "row.hpp"

#include <functional>

// Code shared by the rows of isolated devices of all backends. "Ours" is the device in a worker process, "theirs" the
// same device in this process.
namespace coaccel::bench {

inline constexpr std::chrono::nanoseconds spinning = std::chrono::milliseconds(1);
inline constexpr std::chrono::nanoseconds blocking{0};

/// The same device in a worker process, which is replaced at once after every loss.
device_options isolated(device_options o, std::chrono::nanoseconds spin = worker_options{}.spin);

/// Adds a row of this name and one of its 99th percentile. Both players have a device `on` and a function `start()`,
/// which returns a function that starts the op.
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

/// Forgets which losses of workers the log of isolated devices has told about so far.
void forget_losses() noexcept;
/// The seconds from the first message about the loss of a worker to this time.
double seconds_from_loss(clock::time_point ended);

/// Adds the rows of copies from and to pageable and pinned memory.
void copy_rows(rows& table, const device_options& o);

struct recovery {
    const char* name;
    int standby;
    double goal_ms;
    const char* goal_text;
    int rounds;
    /// The pause between faults, long enough for a standby to become ready.
    clock::duration between;
    /// Kills the worker of a device.
    std::function<void(one_device&)> fault;
};

/// Adds the row of the time from the detection of the loss of a worker to the completion of the first successful op,
/// and the row that compares the first product after it with the second.
void recovery_row(rows& table, const device_options& o, const recovery& r);

/// Adds the row of the memory that idle isolated devices add to this process.
void memory_row(rows& table, const device_options& o);

} // namespace coaccel::bench

#endif
