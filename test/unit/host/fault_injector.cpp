#include <coaccel/host/fault_injector.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace test_host_fault_injector {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using verdict = fault_injector::verdict;

/// The next n results of next_op, one letter each.
std::string play(fault_injector& f, int n)
{
    std::string all;
    for (int i = 0; i < n; ++i)
        switch (f.next_op()) {
        case verdict::run: all += '.'; break;
        case verdict::poison: all += 'P'; break;
        case verdict::hang: all += 'H'; break;
        }
    return all;
}

host_faults plan(std::uint64_t poison_at, std::uint64_t poison_every, std::uint64_t hang_at)
{
    host_faults p;
    p.poison_at = poison_at;
    p.poison_every = poison_every;
    p.hang_at = hang_at;
    return p;
}

} // namespace

TEST_SUITE_BEGIN("fault_injector");

TEST_CASE("planned faults are injected exactly as planned")
{
    struct row {
        const char* name;
        host_faults plan;
        const char* verdicts;
        std::uint64_t played;
    };
    const row rows[] = {
        {"nothing", {}, "........", 0},
        {"the first", plan(1, 0, 0), "P.......", 1},
        {"the third", plan(3, 0, 0), "..P.....", 1},
        {"every one", plan(0, 1, 0), "PPPPPPPP", 8},
        {"every third", plan(0, 3, 0), "..P..P..", 2},
        {"the second and every third", plan(2, 3, 0), ".PP..P..", 3},
        {"one for both reasons", plan(3, 3, 0), "..P..P..", 2},
        {"hang", plan(0, 0, 4), "...H....", 1},
        {"hang and poison", plan(2, 0, 4), ".P.H....", 2},
        {"poison comes before hang", plan(4, 0, 4), "...P....", 1},
        {"hang among poisons", plan(0, 2, 3), ".PHP.P.P", 5},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        fault_injector f(r.plan);
        CHECK(play(f, 8) == r.verdicts);
        CHECK(f.played() == r.played);
    }
}

TEST_CASE("a fault requested at run time is injected once, into the next op")
{
    fault_injector f;
    CHECK(play(f, 2) == "..");
    f.poison();
    f.poison();
    CHECK(play(f, 3) == "P..");
    f.hang();
    CHECK(play(f, 3) == "H..");
    f.hang();
    f.poison();
    CHECK(play(f, 4) == "PH..");
    CHECK(f.played() == 4);
}

TEST_CASE("a requested fault waits for an op without a planned fault")
{
    fault_injector f(plan(1, 0, 0));
    f.poison();
    f.hang();
    CHECK(play(f, 4) == "PPH.");
}

TEST_CASE("starts are refused as often as planned or requested")
{
    host_faults p;
    p.refuse_starts = 2;
    fault_injector f(p);
    CHECK(f.refuses_start());
    CHECK(f.refuses_start());
    CHECK_FALSE(f.refuses_start());
    f.refuse_starts(1);
    CHECK(f.refuses_start());
    CHECK_FALSE(f.refuses_start());
    f.refuse_starts(5);
    f.refuse_starts(0);
    CHECK_FALSE(f.refuses_start());
    CHECK(f.played() == 0);
}

TEST_CASE("the loads of the last plan that was named are poisoned")
{
    fault_injector f;
    CHECK_FALSE(f.poisons_load("a"));
    CHECK_FALSE(f.poisons_load(""));
    f.poison_loads("a");
    CHECK(f.poisons_load("a"));
    CHECK_FALSE(f.poisons_load("b"));
    CHECK_FALSE(f.poisons_load(""));
    f.poison_loads("b");
    CHECK_FALSE(f.poisons_load("a"));
    f.poison_loads("");
    CHECK_FALSE(f.poisons_load("b"));
    CHECK(play(f, 2) == "..");
}

TEST_CASE("allocations fail above the limit, not at it")
{
    host_faults p;
    p.out_of_memory_at = 100;
    const fault_injector f(p);
    CHECK_FALSE(f.out_of_memory(0));
    CHECK_FALSE(f.out_of_memory(100));
    CHECK(f.out_of_memory(101));
    CHECK_FALSE(fault_injector().out_of_memory(~std::uint64_t(0)));
}

TEST_CASE("blocks() is true for plans with a hang or a delay")
{
    auto delayed = [](std::chrono::nanoseconds d) {
        host_faults p;
        p.delay = d;
        return p;
    };
    CHECK_FALSE(fault_injector().blocks());
    CHECK_FALSE(fault_injector(plan(1, 1, 0)).blocks());
    CHECK(fault_injector(plan(0, 0, 1)).blocks());
    CHECK(fault_injector(delayed(1ns)).blocks());
    CHECK(fault_injector(delayed(1ns)).delay() == 1ns);
    CHECK_FALSE(fault_injector(delayed(0ns)).blocks());
}

TEST_CASE("with many threads, each planned fault and each refusal is injected exactly once")
{
    host_faults p = plan(1000, 7, 500);
    p.refuse_starts = 100;
    fault_injector f(p);
    std::atomic<int> poisoned{0}, hung{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 700; ++i) {
                const auto v = f.next_op();
                poisoned += v == verdict::poison;
                hung += v == verdict::hang;
                refused += f.refuses_start();
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(poisoned == 2800 / 7 + 1);
    CHECK(hung == 1);
    CHECK(refused == 100);
    CHECK(f.played() == 402);
}

TEST_SUITE_END();

} // namespace test_host_fault_injector
