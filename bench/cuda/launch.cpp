#include "naive.hpp"
#include "ours.hpp"
#include "rows.hpp"

#include <utility>

namespace coaccel::bench {
namespace {

constexpr int deep = 64;

template <std::size_t... I>
auto seq_of(const our_gpu::empty_launch& op, std::index_sequence<I...>)
{
    return seq((static_cast<void>(I), op)...);
}

/// Runs `f` and returns its CPU seconds per op.
template <class F>
double cpu_per_op(int ops, F f)
{
    const double before = cpu_seconds();
    f();
    return (cpu_seconds() - before) / ops;
}

void time_launches(our_gpu& ours, int skip, int count, std::vector<double>& times)
{
    times.reserve(times.size() + static_cast<std::size_t>(count));
    ours.run(1, [&] { return time_each(ours.start_empty(), skip, count, &times); });
}

} // namespace

void round_trip_rows(const stage& s, rows& table)
{
    constexpr int skip = 50;
    constexpr int count = 1000;
    our_gpu ours(s.folder);
    const auto all = collect(
        10, [&](auto& times) { time_launches(ours, skip, count, times); },
        [&](auto& times) { s.raw.round_trips(skip, count, times); });
    table.push_back(at_most("rtt_vs_sync", scaled(all.middle(), to_us), 1.10, "us p50", "<= 1.10"));
    table.push_back(at_most("rtt_vs_sync_p99", scaled(all.at(0.99), to_us), 2, "us p99", "<= 2"));
}

void host_fn_row(const stage& s, rows& table)
{
    constexpr int count = 1000;
    device_options o;
    o.context.completion = completion::host_fn;
    our_gpu ours(s.folder, o);
    const auto all = collect(
        6, [&](auto& times) { time_launches(ours, 0, count, times); },
        [&](auto& times) { naive_time(s.raw, 1, count, times); });
    table.push_back(at_most("hostfn_rtt_vs_naive", scaled(all.middle(), to_us), 0.75, "us p50", "<= 0.75"));
}

void depth_vs_enqueue_row(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const auto p = side_by_side(9, [&] { return ours.launch_time(deep, 400); }, [&] { return s.raw.enqueue_time(); });
    table.push_back(at_most("depth64_vs_enqueue", scaled(p, to_us), 1.5, "us/op", "<= 1.5"));
}

void depth_vs_naive_row(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    std::vector<double> unused;
    const auto p = side_by_side(
        5, [&] { return ours.launch_time(deep, 200); }, [&] { return naive_time(s.raw, deep, 50, unused); });
    table.push_back(at_most("depth64_vs_naive", scaled(p, to_us), 0.25, "us/op", "<= 0.25"));
}

void seq_row(const stage& s, rows& table)
{
    constexpr int kernels = 16;
    constexpr int coroutines = 8;
    constexpr int each = 150;
    our_gpu ours(s.folder);
    const auto sequence = seq_of(ours.empty(), std::make_index_sequence<kernels>{});
    auto start = [gpu = &ours.gpu(), sequence = &sequence] { return gpu->async_exec(*sequence); };
    const auto p = side_by_side(
        9,
        [&] {
            return ours.run(coroutines, [&] { return await_each(start, each); }) /
                   (static_cast<double>(coroutines) * each * kernels);
        },
        [&] { return s.raw.enqueue_time(); });
    table.push_back(at_most("seq16_vs_enqueue", scaled(p, to_us), 1.15, "us/kernel", "<= 1.15"));
}

void cpu_row(const stage& s, rows& table)
{
    constexpr int each = 400;
    constexpr int launches = 20000;
    our_gpu ours(s.folder);
    const auto p = side_by_side(
        7, [&] { return cpu_per_op(deep * each, [&] { ours.launch_time(deep, each); }); },
        [&] { return cpu_per_op(launches, [&] { s.raw.enqueue_time(launches); }); });
    table.push_back(at_most_more("cpu_per_op", scaled(p, to_us), 2, "us of CPU/op", "<= +2"));
}

void growth_row(const stage& s, rows& table)
{
    constexpr int many = 10000;
    device_options o;
    o.queue.max_in_flight = 2 * many;
    our_gpu ours(s.folder, o);
    const auto p =
        side_by_side(5, [&] { return ours.launch_time(many, 5); }, [&] { return ours.launch_time(deep, 800); });
    table.push_back(at_most("growth", scaled(p, to_us), 1.3, "us/op", "<= 1.3"));
}

} // namespace coaccel::bench
