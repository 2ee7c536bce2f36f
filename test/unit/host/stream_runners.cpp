#include "host/stream_runners.hpp"

#include "support.hpp"
#include "support/sanitized.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace test_host_stream_runners {

namespace {

using namespace coaccel;
using host::stream_runners;
using host::stream_state;

} // namespace

TEST_SUITE_BEGIN("stream_runners");

TEST_CASE("urgent streams run first, equal ones in turn")
{
    stream_state blocker(priority::normal, nullptr);
    stream_state low(priority::low, nullptr), low2(priority::low, nullptr);
    stream_state normal(priority::normal, nullptr), normal2(priority::normal, nullptr);
    stream_state high(priority::high, nullptr);
    test::gate gate;
    test::told done;
    std::vector<stream_state*> order;
    stream_runners pool(1, [&](stream_state& s) {
        if (&s == &blocker)
            return gate.pass();
        order.push_back(&s);
        done.call().function(&done);
    });
    pool.schedule(blocker);
    gate.wait_for(1);
    for (auto* s : {&low, &normal, &low2, &high, &normal2})
        pool.schedule(*s);
    gate.open();
    done.wait_for(5);
    CHECK(order == std::vector<stream_state*>{&high, &normal, &normal2, &low, &low2});
}

TEST_CASE("each thread runs its own stream")
{
    constexpr int threads = 4;
    test::gate gate;
    std::vector<std::unique_ptr<stream_state>> streams;
    stream_runners pool(threads, [&](stream_state&) { gate.pass(); });
    for (int i = 0; i < threads; ++i) {
        streams.push_back(std::make_unique<stream_state>(priority::normal, &pool));
        CHECK(streams.back()->pool() == &pool);
        pool.schedule(*streams.back());
    }
    // All arrive only if all of them run at once.
    gate.wait_for(threads);
    gate.open();
}

TEST_CASE("a stream may be scheduled from within a run")
{
    stream_state s(priority::normal, nullptr);
    test::told done;
    int left = 1000;
    stream_runners* self = nullptr;
    stream_runners pool(2, [&](stream_state& again) {
        if (--left > 0)
            self->schedule(again);
        else
            done.call().function(&done);
    });
    self = &pool;
    pool.schedule(s);
    done.wait_for(1);
    CHECK(left == 0);
}

TEST_CASE("stop waits for running streams and drops waiting ones")
{
    stream_state running(priority::normal, nullptr), waiting(priority::high, nullptr);
    test::gate gate;
    std::atomic<int> runs{0};
    stream_runners pool(1, [&](stream_state& s) {
        ++runs;
        if (&s == &running)
            gate.pass();
    });
    pool.schedule(running);
    gate.wait_for(1);
    std::thread opener([&] { gate.open(); });
    pool.stop();
    opener.join();
    const int ran = runs;
    CHECK(ran >= 1);
    pool.schedule(waiting);
    pool.stop();
    CHECK(runs == ran);
}

TEST_CASE("streams scheduled by many threads all run")
{
    constexpr int producers = 4;
    constexpr int each = 2000;
    std::atomic<int> runs{0};
    test::told done;
    std::vector<std::unique_ptr<stream_state>> streams;
    for (int i = 0; i < producers; ++i)
        streams.push_back(std::make_unique<stream_state>(static_cast<priority>(i % 3), nullptr));
    stream_runners pool(3, [&](stream_state&) {
        if (++runs == producers * each)
            done.call().function(&done);
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < producers; ++i)
        threads.emplace_back([&, i] {
            for (int n = 0; n < each; ++n)
                pool.schedule(*streams[static_cast<std::size_t>(i)]);
        });
    for (auto& t : threads)
        t.join();
    done.wait_for(1);
    CHECK(runs == producers * each);
}

TEST_CASE("the failure to start a thread is reported as an error")
{
    // In a child process with little address space left; the sanitizers need more.
    if (test::sanitized)
        return;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        rlimit limit{};
        ::getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = rlim_t(1) << 30;
        ::setrlimit(RLIMIT_AS, &limit);
        auto made = host::backend::create(test::host_with(host_mode::pool, 1024));
        ::_exit(!made && (made.error() == errc::start_failed || made.error() == errc::out_of_memory) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_SUITE_END();

} // namespace test_host_stream_runners
