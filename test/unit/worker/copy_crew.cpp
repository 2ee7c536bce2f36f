#include "worker/copy_crew.hpp"

#include "support/told.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <numeric>
#include <set>

namespace {

using namespace coaccel;
using namespace coaccel::worker;

std::size_t threads_of_process()
{
    const std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

} // namespace

TEST_SUITE_BEGIN("copy_crew");

TEST_CASE("every job is done once, and its token can be taken once")
{
    constexpr int n = 200;
    test::told t;
    std::vector<int> runs(n);
    copy_crew crew(3);
    for (int& r : runs)
        crew.run([&r] { ++r; }, &r, t.call());
    t.wait_for(n);
    std::vector<copy_crew::token> done;
    crew.take_done(done);
    CHECK(done.size() == n);
    CHECK(std::set<void*>(done.begin(), done.end()).size() == n);
    CHECK(std::ranges::all_of(runs, [](int r) { return r == 1; }));
    crew.take_done(done);
    CHECK(done.empty());
    CHECK(t.count() == n);
}

TEST_CASE("a token is among the done when its notification comes")
{
    copy_crew crew(2);
    for (int i = 0; i < 100; ++i) {
        test::told t;
        int token = 0;
        crew.run([] {}, &token, t.call());
        t.wait_for(1);
        std::vector<copy_crew::token> done;
        crew.take_done(done);
        REQUIRE(done.size() == 1);
        CHECK(done[0] == &token);
    }
}

TEST_CASE("there are no threads until there is a job, and never more than allowed")
{
    const auto before = threads_of_process();
    {
        copy_crew crew(2);
        CHECK(threads_of_process() == before);
        test::told t;
        std::promise<void> gate;
        const auto open = gate.get_future().share();
        std::atomic<int> inside{0}, most{0};
        for (int i = 0; i < 20; ++i)
            crew.run(
                [&] {
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                    }
                    open.wait();
                    --inside;
                },
                nullptr, t.call());
        CHECK(threads_of_process() == before + 2);
        gate.set_value();
        t.wait_for(20);
        CHECK(most <= 2);
    }
    CHECK(threads_of_process() == before);
}

TEST_CASE("a thread that has nothing to do takes the next job")
{
    const auto before = threads_of_process();
    copy_crew crew(8);
    test::told t;
    crew.run([] {}, nullptr, t.call());
    t.wait_for(1);
    const auto with_one = threads_of_process();
    CHECK(with_one == before + 1);
    // It may not be back from the last job, and then one more helps.
    for (int i = 2; i < 50; ++i) {
        crew.run([] {}, nullptr, t.call());
        t.wait_for(i);
    }
    CHECK(threads_of_process() <= before + 8);
}

TEST_CASE("jobs run at the same time")
{
    copy_crew crew(2);
    test::told t;
    std::promise<void> a, b;
    crew.run(
        [&] {
            a.set_value();
            b.get_future().wait();
        },
        nullptr, t.call());
    crew.run(
        [&] {
            a.get_future().wait();
            b.set_value();
        },
        nullptr, t.call());
    t.wait_for(2);
    CHECK(t.count() == 2);
}

TEST_CASE("without threads a job runs where it was given")
{
    copy_crew crew(0);
    test::told t;
    std::thread::id where;
    int token = 0;
    crew.run([&] { where = std::this_thread::get_id(); }, &token, t.call());
    CHECK(where == std::this_thread::get_id());
    CHECK(t.count() == 1);
    std::vector<copy_crew::token> done;
    crew.take_done(done);
    REQUIRE(done.size() == 1);
    CHECK(done[0] == &token);
}

TEST_CASE("stopping waits for what has begun and drops the rest")
{
    test::told t;
    std::atomic<bool> ended{false};
    std::atomic<int> others{0};
    std::promise<void> begun, gate;
    auto crew = std::make_unique<copy_crew>(1);
    crew->run(
        [&] {
            begun.set_value();
            gate.get_future().wait();
            ended = true;
        },
        nullptr, t.call());
    for (int i = 0; i < 10; ++i)
        crew->run([&] { ++others; }, nullptr, t.call());
    begun.get_future().wait();
    std::thread stopper([&] { crew->stop(); });
    gate.set_value();
    stopper.join();
    CHECK(ended);
    // Those behind it may have begun before the stop came.
    const int done = others;
    CHECK(t.count() == 1 + done);
    std::vector<copy_crew::token> tokens;
    crew->take_done(tokens);
    CHECK(tokens.size() == static_cast<std::size_t>(1 + done));
    crew->stop();
    crew.reset();
    CHECK(others == done);
}

TEST_CASE("a job that was dropped lets go of what it holds")
{
    test::told t;
    const auto held = std::make_shared<int>(1);
    std::promise<void> begun, gate;
    copy_crew crew(1);
    crew.run(
        [&] {
            begun.set_value();
            gate.get_future().wait();
        },
        nullptr, t.call());
    begun.get_future().wait();
    crew.run([held] { ++*held; }, nullptr, t.call());
    CHECK(held.use_count() > 1);
    std::thread stopper([&] { crew.stop(); });
    // Dropped at once, while the first is still at work.
    while (held.use_count() > 1)
        std::this_thread::yield();
    gate.set_value();
    stopper.join();
    CHECK(*held == 1);
}

TEST_SUITE_END();
