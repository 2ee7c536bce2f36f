#include "isolated.hpp"

#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <memory>

// Runs of a plan with a kernel that faults for certain inputs, in worker processes with a standby.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using namespace test;
using namespace test::isolated;

constexpr std::size_t count = 32;

/// The first element of the input says what the kernel does.
enum class input : int { harmless = 0, illegal_address = 1, trap = 2 };

constexpr const char* source = R"(
extern "C" __global__ void twice(const float* x, float* y)
{
    if (x[0] == 1.0f)
        y[1ull << 44] = 1.0f;
    if (x[0] == 2.0f)
        asm volatile("trap;");
    y[threadIdx.x] = 2.0f * x[threadIdx.x];
}
)";

struct one_run {
    explicit one_run(input what) : x(count, 3.0f) { x[0] = static_cast<float>(what); }

    bool is_right() const
    {
        auto expected = x;
        for (float& v : expected)
            v *= 2;
        return completions == 1 && !ec && y == expected;
    }

    std::vector<float> x;
    std::vector<float> y = std::vector<float>(count, -1.0f);
    error_code ec;
    int completions = 0;
    clock_type::time_point end;
};

using run_list = std::vector<std::shared_ptr<one_run>>;

struct fixture : world {
    explicit fixture(const plan_options& how = {}, const device_options& o = isolated_options(1)) : gpu(make(o))
    {
        const auto kernel = compile(io, gpu, source, "twice");
        plan_builder b("twice");
        const auto x = b.input<float>(count);
        const auto y = b.output<float>(count);
        b.add(pure(jit::launch(kernel, {.block = {count}}, in(x), out(y))));
        auto made = await(io, gpu.async_load(b.finish().value(), how));
        REQUIRE_MESSAGE(made, made.error().message());
        p = std::move(made).value();
        wait_for_standby();
    }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    void wait_for_standby()
    {
        run_until(io, [&] { return stats().standby_plans == 1; });
    }

    std::shared_ptr<one_run> start(input what = input::harmless)
    {
        auto r = std::make_shared<one_run>(what);
        p.async_run(from(r->x), to(r->y), [r](error_code ec) {
            ++r->completions;
            r->ec = ec;
            r->end = clock_type::now();
        });
        return r;
    }

    run_list start_many(int n)
    {
        run_list all;
        for (int i = 0; i < n; ++i)
            all.push_back(start());
        return all;
    }

    void wait_for(const run_list& all)
    {
        for (const auto& r : all)
            run_until(io, [&] { return r->completions > 0; });
    }

    void check_right(const run_list& all)
    {
        wait_for(all);
        for (const auto& r : all)
            CHECK_MESSAGE(r->is_right(), r->ec.message());
    }

    device gpu;
    plan p;
};

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("a run that faults costs exactly one error, and no other run fails")
{
    fixture f({.instances = 16, .poison_limit = 1000});
    std::uint64_t convicted = 0;
    clock_type::duration longest{};
    // Each round ends two contexts: that of all runs, and that of the suspect alone.
    constexpr int rounds = 150;
    for (int round = 0; round < rounds; ++round) {
        // The driver needs three times as long to report a trap.
        const auto what = round % 15 == 0 ? input::trap : input::illegal_address;
        CAPTURE(round);
        CAPTURE(int(what));
        f.wait_for_standby();
        const auto began = clock_type::now();
        auto innocent = f.start_many(20);
        const auto poisoned = f.start(what);
        for (auto& r : f.start_many(20))
            innocent.push_back(r);
        f.wait_for({poisoned});
        CHECK(poisoned->completions == 1);
        CHECK(poisoned->ec == errc::context_lost);
        f.check_right(innocent);
        for (const auto& r : innocent)
            longest = std::max(longest, r->end - began);
        CHECK(f.stats().convicted == ++convicted);
        CHECK(f.stats().failed == convicted);
    }
    MESSAGE("faults: " << f.gpu.status().generation - 1 << ", longest innocent run: " << milliseconds(longest)
                       << " ms");
    CHECK(f.gpu.status().generation > 2 * rounds);
}

TEST_CASE("a plan that always faults is quarantined")
{
    fixture f({.poison_limit = 1});
    for (int i = 0; i < 2; ++i) {
        const auto r = f.start(input::trap);
        f.wait_for({r});
        CHECK(r->ec == errc::context_lost);
    }
    CHECK(f.p.quarantined());
    const auto refused = f.start();
    f.wait_for({refused});
    CHECK(refused->ec == errc::plan_quarantined);
    REQUIRE(await(f.io, f.p.async_revive()));
    f.check_right(f.start_many(5));
}

TEST_CASE("an overdue run moves the device to its standby before the driver reports the trap")
{
    auto o = isolated_options(1);
    o.context.hang_timeout = 10s;
    fixture f({.suspect_after = {.factor = 20, .at_least = 20ms}}, o);
    for (int i = 0; i < 20; ++i)
        f.check_right(f.start_many(1));
    const auto began = clock_type::now();
    const auto poisoned = f.start(input::trap);
    const auto innocent = f.start_many(10);
    f.check_right(innocent);
    clock_type::duration longest{};
    for (const auto& r : innocent)
        longest = std::max(longest, r->end - began);
    MESSAGE("longest innocent run: " << milliseconds(longest) << " ms");
    f.wait_for({poisoned});
    CHECK(poisoned->ec == errc::context_lost);
    CHECK(f.stats().convicted == 1);
    CHECK(f.stats().failed == 1);
}

TEST_SUITE_END();

} // namespace
