#include "worker/transport/copy_jobs.hpp"

#include "support/told.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <numeric>
#include <set>
#include <thread>

namespace test_worker_copy_jobs {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

std::set<std::filesystem::path> threads_of_process()
{
    const std::filesystem::directory_iterator all("/proc/self/task");
    return {begin(all), end(all)};
}

// Counted by their names: a thread that was joined stays in the list for a moment.
std::ptrdiff_t threads_since(const std::set<std::filesystem::path>& before)
{
    return std::ranges::count_if(threads_of_process(), [&](const auto& thread) { return !before.contains(thread); });
}

} // namespace

TEST_SUITE_BEGIN("copy_jobs");

TEST_CASE("every job runs once, and its token is returned once")
{
    constexpr int n = 200;
    test::told t;
    std::vector<int> runs(n);
    copy_jobs jobs(3);
    for (int& r : runs)
        jobs.run([&r] { ++r; }, &r, t.call());
    t.wait_for(n);
    std::vector<copy_jobs::token> done;
    jobs.take_done(done);
    CHECK(done.size() == n);
    CHECK(std::set<void*>(done.begin(), done.end()).size() == n);
    CHECK(std::ranges::all_of(runs, [](int r) { return r == 1; }));
    jobs.take_done(done);
    CHECK(done.empty());
    CHECK(t.count() == n);
}

TEST_CASE("a token is in the done list when its notification arrives")
{
    copy_jobs jobs(2);
    for (int i = 0; i < 100; ++i) {
        test::told t;
        int token = 0;
        jobs.run([] {}, &token, t.call());
        t.wait_for(1);
        std::vector<copy_jobs::token> done;
        jobs.take_done(done);
        REQUIRE(done.size() == 1);
        CHECK(done[0] == &token);
    }
}

TEST_CASE("threads are started by jobs, up to the limit")
{
    const auto before = threads_of_process();
    {
        copy_jobs jobs(2);
        CHECK(threads_since(before) == 0);
        test::told t;
        std::promise<void> gate;
        const auto open = gate.get_future().share();
        std::atomic<int> inside{0}, most{0};
        for (int i = 0; i < 20; ++i)
            jobs.run(
                [&] {
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                    }
                    open.wait();
                    --inside;
                },
                nullptr, t.call());
        CHECK(threads_since(before) == 2);
        gate.set_value();
        t.wait_for(20);
        CHECK(most <= 2);
    }
    while (threads_since(before) > 0)
        std::this_thread::yield();
}

TEST_CASE("an idle thread takes the next job")
{
    const auto before = threads_of_process();
    copy_jobs jobs(8);
    test::told t;
    jobs.run([] {}, nullptr, t.call());
    t.wait_for(1);
    CHECK(threads_since(before) == 1);
    // The thread may not have returned from the last job yet; then another thread is started.
    for (int i = 2; i < 50; ++i) {
        jobs.run([] {}, nullptr, t.call());
        t.wait_for(i);
    }
    CHECK(threads_since(before) <= 8);
}

TEST_CASE("jobs run at the same time")
{
    copy_jobs jobs(2);
    test::told t;
    std::promise<void> a, b;
    jobs.run(
        [&] {
            a.set_value();
            b.get_future().wait();
        },
        nullptr, t.call());
    jobs.run(
        [&] {
            a.get_future().wait();
            b.set_value();
        },
        nullptr, t.call());
    t.wait_for(2);
    CHECK(t.count() == 2);
}

TEST_CASE("without threads a job runs on the calling thread")
{
    copy_jobs jobs(0);
    test::told t;
    std::thread::id where;
    int token = 0;
    jobs.run([&] { where = std::this_thread::get_id(); }, &token, t.call());
    CHECK(where == std::this_thread::get_id());
    CHECK(t.count() == 1);
    std::vector<copy_jobs::token> done;
    jobs.take_done(done);
    REQUIRE(done.size() == 1);
    CHECK(done[0] == &token);
}

TEST_CASE("stop waits for running jobs and drops queued ones")
{
    test::told t;
    std::atomic<bool> ended{false};
    std::atomic<int> others{0};
    std::promise<void> begun, gate;
    auto jobs = std::make_unique<copy_jobs>(1);
    jobs->run(
        [&] {
            begun.set_value();
            gate.get_future().wait();
            ended = true;
        },
        nullptr, t.call());
    for (int i = 0; i < 10; ++i)
        jobs->run([&] { ++others; }, nullptr, t.call());
    begun.get_future().wait();
    std::thread stopper([&] { jobs->stop(); });
    gate.set_value();
    stopper.join();
    CHECK(ended);
    // The jobs behind it may have started before the stop.
    const int done = others;
    CHECK(t.count() == 1 + done);
    std::vector<copy_jobs::token> tokens;
    jobs->take_done(tokens);
    CHECK(tokens.size() == static_cast<std::size_t>(1 + done));
    jobs->stop();
    jobs.reset();
    CHECK(others == done);
}

TEST_CASE("a dropped job is destroyed")
{
    test::told t;
    const auto held = std::make_shared<int>(1);
    std::promise<void> begun, gate;
    copy_jobs jobs(1);
    jobs.run(
        [&] {
            begun.set_value();
            gate.get_future().wait();
        },
        nullptr, t.call());
    begun.get_future().wait();
    jobs.run([held] { ++*held; }, nullptr, t.call());
    CHECK(held.use_count() > 1);
    std::thread stopper([&] { jobs.stop(); });
    // The queued job is dropped immediately, while the first is still running.
    while (held.use_count() > 1)
        std::this_thread::yield();
    gate.set_value();
    stopper.join();
    CHECK(*held == 1);
}

TEST_SUITE_END();

} // namespace test_worker_copy_jobs
