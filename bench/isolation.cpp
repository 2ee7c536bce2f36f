#include "isolation.hpp"

#include <coaccel/ops/blas.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace coaccel::bench {
namespace {

std::atomic<clock::rep> loss_seen{0};

void read_log(std::string_view line)
{
    for (const std::string_view words : {"lost its context", "ended by signal"})
        if (line.find(words) != std::string_view::npos) {
            clock::rep none = 0;
            loss_seen.compare_exchange_strong(none, clock::now().time_since_epoch().count());
        }
}

/// A device and the host memory that is copied to and from it.
struct copying {
    one_device& on;
    ref<float> block;
    std::span<const float> from;
    std::span<float> to;

    template <class Start>
    void time(std::vector<double>& times, Start start) const
    {
        constexpr int skip = 1;
        constexpr int count = 6;
        on.run(1, [&] { return time_each(start, skip, count, &times); });
    }

    auto in() const
    {
        return [this](std::vector<double>& times) {
            time(times, [gpu = &on.gpu(), b = block, d = from] { return gpu->async_write(b, d); });
        };
    }

    auto out() const
    {
        return [this](std::vector<double>& times) {
            time(times, [gpu = &on.gpu(), b = block, d = to] { return gpu->async_read(b, d); });
        };
    }
};

void add_copies(rows& table, const std::string& suffix, const copying& ours, const copying& theirs, double goal,
                const char* goal_text)
{
    constexpr int rounds = 8;
    for (const copying* c : {&ours, &theirs})
        std::ranges::fill(c->to, 0.0f);
    const auto in = collect(rounds, ours.in(), theirs.in());
    table.push_back(at_most("worker_h2d_64m" + suffix, scaled(in.middle(), to_ms), goal, "ms p50", goal_text));
    const auto out = collect(rounds, ours.out(), theirs.out());
    table.push_back(at_most("worker_d2h_64m" + suffix, scaled(out.middle(), to_ms), goal, "ms p50", goal_text));
    for (const copying* c : {&ours, &theirs})
        if (!std::ranges::equal(c->from, c->to))
            throw failure("what came back is not what was sent");
}

double recovery_time(one_device& d, const recovery& r)
{
    const std::vector<float> data(1, 1.0f);
    d.idle_for(r.between);
    const auto before = d.gpu().status().generation;
    forget_losses();
    r.fault(d);
    for (;;) {
        const auto made = d.outcome_of<buffer<float>>(d.gpu().async_upload(std::span<const float>(data)));
        if (made && d.gpu().status().generation != before)
            break;
        if (!made && !is_context_lost(made.error()))
            throw failure("after a fault: " + made.error().message());
    }
    return seconds_from_loss(clock::now());
}

/// The duration of the first and of the second product in a worker that has just taken over.
pair first_product(one_device& d)
{
    constexpr std::uint64_t n = 64;
    const auto x = d.get<buffer<float>>(d.gpu().async_alloc<float>(3 * n * n, memory_init::zero));
    const auto part = [&](std::size_t i) { return x.subspan(i * n * n, n * n); };
    const blas::gemm<float> op{.a = part(0), .b = part(1), .c = part(2), .m = n, .n = n, .k = n};
    std::array<double, 2> times{};
    for (double& t : times) {
        const auto began = clock::now();
        d.get<void>(d.gpu().async_exec(op));
        t = seconds_since(began);
    }
    return {times[0], times[1]};
}

double resident_bytes()
{
    std::ifstream file("/proc/self/smaps_rollup");
    std::string word;
    double kilobytes = 0;
    while (file >> word)
        if (word == "Rss:" && file >> kilobytes)
            return kilobytes * 1024;
    throw failure("/proc/self/smaps_rollup does not tell the resident memory");
}

} // namespace

device_options isolated(device_options o, std::chrono::nanoseconds spin)
{
    o.isolation = isolation::worker;
    o.worker.spin = spin;
    o.worker.log = &read_log;
    // The state of the device must be the same before each fault.
    o.restart.max_restarts = 1000;
    o.restart.multiplier = 1;
    return o;
}

void forget_losses() noexcept
{
    loss_seen = 0;
}

double seconds_from_loss(clock::time_point ended)
{
    if (loss_seen == 0)
        throw failure("no worker was lost");
    return std::chrono::duration<double>(ended.time_since_epoch() - clock::duration(loss_seen)).count();
}

void copy_rows(rows& table, const device_options& o)
{
    constexpr std::size_t floats = (std::size_t(64) << 20) / sizeof(float);
    std::vector<float> data(floats);
    for (std::size_t i = 0; i < floats; ++i)
        data[i] = static_cast<float>(i % 1000003);

    auto roomy = isolated(o);
    roomy.worker.staging_bytes = std::uint64_t(256) << 20;
    one_device ours(roomy);
    one_device theirs(o);
    const auto our_block = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(floats));
    const auto their_block = theirs.get<buffer<float>>(theirs.gpu().async_alloc<float>(floats));
    {
        std::vector<float> our_back(floats);
        std::vector<float> their_back(floats);
        add_copies(table, "", {ours, our_block.ref(), data, our_back}, {theirs, their_block.ref(), data, their_back},
                   1.15, "<= 1.15");
    }
    const auto pinned = [](one_device& d) {
        return d.get<pinned_buffer<float>>(d.gpu().async_alloc_pinned<float>(floats));
    };
    const auto our_from = pinned(ours);
    const auto our_to = pinned(ours);
    const auto their_from = pinned(theirs);
    const auto their_to = pinned(theirs);
    std::ranges::copy(data, our_from.begin());
    std::ranges::copy(data, their_from.begin());
    add_copies(table, "_pinned", {ours, our_block.ref(), our_from.span(), our_to.span()},
               {theirs, their_block.ref(), their_from.span(), their_to.span()}, 1.05, "<= 1.05");
}

void recovery_row(rows& table, const device_options& o, const recovery& r)
{
    auto supervised = isolated(o);
    supervised.standby = r.standby;
    one_device ours(supervised);
    std::vector<double> times;
    std::vector<double> first;
    std::vector<double> second;
    for (int i = 0; i < r.rounds; ++i) {
        times.push_back(recovery_time(ours, r) * to_ms);
        const auto products = first_product(ours);
        first.push_back(products.ours * to_ms);
        second.push_back(products.theirs * to_ms);
    }
    table.push_back(at_most(r.name, {median(times), r.goal_ms}, 1, "ms from loss", r.goal_text));
    table.push_back(without_goal(std::string(r.name) + "_gemm", {median(first), median(second)}, "ms"));
}

void memory_row(rows& table, const device_options& o)
{
    constexpr int devices = 8;
    constexpr double mebibyte = 1 << 20;
    constexpr double goal = 8;
    // The first device excludes one-time allocations from the count. Pages of a staging area become resident only when
    // data is copied.
    const one_device first(isolated(o));
    std::vector<std::unique_ptr<one_device>> all;
    const double before = resident_bytes();
    for (int i = 0; i < devices; ++i)
        all.push_back(std::make_unique<one_device>(isolated(o)));
    const double each = (resident_bytes() - before) / devices / mebibyte;
    table.push_back(at_most("worker_memory", {each, goal}, 1, "MiB/device", "<= 8"));
}

} // namespace coaccel::bench
