#include "poison_fixture.hpp"
#include "ready_workers.hpp"

#include <doctest/doctest.h>

#include <utility>

namespace test_integration_suspects {

// What callers and the device may do while requests whose context has died run again one at a time.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::poison;
using test::poison_fixture;
using test::poison_options;
using test::poison_run;
using test::poison_runs;

/// A device on which a slow suspect runs, while others wait for it to end.
struct suspects_fixture : poison_fixture {
    explicit suspects_fixture(const device_options& o = poison_options(), float slow_ms = 60'000,
                              exec_options how_others_run = {})
        : poison_fixture(o), p(load()), slow(start(p, poison::slow, slow_ms))
    {
        for (int i = 0; i < 5; ++i)
            others.push_back(start(p, poison::slow, 1, how_others_run));
        // On the device together, and lost together.
        wait_for_in_flight(6);
        kill();
        wait_for_reruns(1);
    }

    plan p;
    std::shared_ptr<poison_run> slow;
    poison_runs others;
};

/// As long as a run must take so that all runs are on the device together; short enough to wait for it.
constexpr float one_second = 1000;

device_options single_lane()
{
    auto o = poison_options();
    // The slow run comes first, so the others are on the device for as long as it is.
    o.context.lanes = lane_policy::single();
    return o;
}

} // namespace

TEST_SUITE_BEGIN("isolated suspects");

TEST_CASE("suspects run one at a time, and other work waits for them")
{
    suspects_fixture f(single_lane(), one_second);
    const auto later = f.start_many(f.p, 10);
    const auto data = test::numbers(10);
    bool uploaded = false;
    f.gpu.async_upload(data, [&](error_code ec, buffer<float>) {
        CHECK_FALSE(ec);
        uploaded = true;
        CHECK(f.slow->ended());
    });
    auto s = f.stats();
    CHECK(s.in_flight == 1);
    CHECK(s.queued == 16);
    // A call that does not want to wait is refused.
    CHECK(f.outcome(f.start(f.p, poison::none, 0, {.when_full = when_full::fail})) == errc::queue_full);
    f.check_right({f.slow});
    f.check_right(f.others);
    f.check_right(later);
    test::run_until(f.io, [&] { return uploaded; });
    s = f.stats();
    CHECK(s.reruns == 6);
    CHECK(s.convicted == 0);
}

TEST_CASE("a suspect that waits can be cancelled at once")
{
    suspects_fixture f(single_lane());
    f.others[2]->signal.emit(asio::cancellation_type::total);
    CHECK(f.outcome(f.others[2]) == operation_aborted);
    CHECK_FALSE(f.slow->ended());
    f.gpu.cancel();
    for (const auto& r : f.others)
        CHECK(f.outcome(r) == operation_aborted);
    // The running one uses the memory of its caller until its worker is dead.
    f.kill();
    CHECK(f.outcome(f.slow) == operation_aborted);
    f.check_right(f.start_many(f.p, 3));
    CHECK(f.stats().convicted == 0);
    CHECK(f.stats().failed == 0);
}

TEST_CASE("a suspect that is cancelled while it runs ends once, and the others go on")
{
    suspects_fixture f(single_lane(), one_second);
    f.slow->signal.emit(asio::cancellation_type::terminal);
    CHECK(f.outcome(f.slow) == operation_aborted);
    f.check_right(f.others);
    CHECK(f.stats().restarts == 1);
}

TEST_CASE("a poisoned suspect that its caller has given up is found all the same")
{
    auto o = poison_options();
    o.context.hang_timeout = 500ms;
    poison_fixture f(o);
    const plan p = f.load();
    const auto hung = f.start(p, poison::hang);
    f.wait_for_reruns(1);
    const auto later = f.start_many(p, 5);
    SUBCASE("cancelled")
    {
        hung->signal.emit(asio::cancellation_type::terminal);
        CHECK(f.outcome(hung) == operation_aborted);
    }
    SUBCASE("not cancelled")
    {
        CHECK(f.outcome(hung) == errc::context_lost);
    }
    f.check_right(later);
    CHECK(f.stats().convicted == 1);
    CHECK(f.stats().restarts == 2);
}

TEST_CASE("the deadlines of suspects hold while they wait and while they run")
{
    exec_options soon;
    soon.deadline = std::chrono::steady_clock::now() + 3s;
    suspects_fixture f(single_lane(), 60'000, soon);
    for (const auto& r : f.others)
        CHECK(f.outcome(r) == errc::deadline_exceeded);
    CHECK_FALSE(f.slow->ended());
    const auto running = f.start(f.p, poison::slow, one_second);
    f.slow->signal.emit(asio::cancellation_type::terminal);
    f.kill();
    CHECK(f.outcome(f.slow) == operation_aborted);
    f.check_right({running});
    CHECK(f.stats().expired == 5);
}

TEST_CASE("a running suspect ends with its deadline when the context has left its memory")
{
    poison_fixture f;
    const plan p = f.load();
    exec_options soon;
    soon.deadline = std::chrono::steady_clock::now() + 1s;
    const auto slow = f.start(p, poison::slow, 3 * one_second, soon);
    f.wait_for_in_flight(1);
    f.kill();
    CHECK(f.outcome(slow) == errc::deadline_exceeded);
    f.check_right(f.start_many(p, 3));
    CHECK(f.stats().restarts == 1);
}

TEST_CASE("a poisoned run with a deadline in the past is not started")
{
    poison_fixture f;
    const plan p = f.load();
    const auto late =
        f.start(p, poison::abort, 0, {.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1)});
    CHECK(f.outcome(late) == errc::deadline_exceeded);
    f.check_right(f.start_many(p, 5));
    CHECK(f.stats().restarts == 0);
}

TEST_CASE("suspects that wait when the restart budget is spent get device_failed")
{
    auto o = single_lane();
    o.restart.max_restarts = 2;
    suspects_fixture f(o);
    f.kill();
    f.wait_for_reruns(2);
    const auto later = f.start_many(f.p, 5);
    f.kill();
    CHECK(f.outcome(f.slow) == errc::device_failed);
    for (const poison_runs* runs : {&std::as_const(f.others), &later})
        for (const auto& r : *runs)
            CHECK(f.outcome(r) == errc::device_failed);
    CHECK(f.gpu.status().state == device_state::failed);
    CHECK(f.stats().convicted == 0);
    REQUIRE(await(f.io, f.gpu.async_revive()));
    f.check_right(f.start_many(f.p, 5));
}

TEST_CASE("a device that is replaced while suspects run finishes them first")
{
    suspects_fixture f(single_lane(), one_second);
    std::optional<error_code> replaced;
    f.gpu.async_replace([&](error_code ec) {
        replaced = ec;
        CHECK(f.slow->ended());
    });
    const auto later = f.start_many(f.p, 5);
    f.check_right({f.slow});
    f.check_right(f.others);
    f.check_right(later);
    test::run_until(f.io, [&] { return replaced.has_value(); });
    CHECK_FALSE(*replaced);
    CHECK(f.stats().restarts == 2);
    CHECK(f.stats().failed == 0);
}

TEST_CASE("a device that drains finishes its suspects")
{
    suspects_fixture f(single_lane(), one_second);
    REQUIRE(await(f.io, f.gpu.async_shutdown(shutdown::drain)));
    CHECK(f.slow->is_right());
    for (const auto& r : f.others)
        CHECK(r->is_right());
}

TEST_CASE("a device that is abandoned answers its suspects")
{
    suspects_fixture f(single_lane());
    REQUIRE(await(f.io, f.gpu.async_shutdown(shutdown::abandon)));
    for (const auto& r : f.others)
        CHECK(f.outcome(r) == errc::device_stopped);
    CHECK(f.outcome(f.slow));
    CHECK(f.slow->completions == 1);
}

TEST_CASE("the last handles of a device and its plan may be dropped while suspects run")
{
    poison_runs all;
    {
        suspects_fixture f(single_lane(), one_second);
        all = f.others;
        all.push_back(f.slow);
        f.p = {};
    }
    for (const auto& r : all)
        CHECK(r->is_right());
}

TEST_CASE("an execution context may be destroyed while suspects run")
{
    std::weak_ptr<poison_run> left;
    {
        asio::io_context io{1};
        auto gpu = test::make_device(io, single_lane());
        auto loaded = await(io, gpu.async_load(test::poisonable_plan()));
        REQUIRE(loaded);
        const plan p = std::move(loaded).value();
        auto r = std::make_shared<poison_run>();
        r->x = test::poison_input(poison::slow, 60'000);
        auto* const memory = r.get();
        left = r;
        p.async_run(from(memory->x), to(memory->y), [r](error_code) { FAIL("must not be called"); });
        r.reset();
        const auto stats = [&] { return await(io, gpu.async_stats()).value(); };
        test::run_until(io, [&] { return stats().in_flight == 1; });
        REQUIRE(::kill(stats().hardware.process, SIGKILL) == 0);
        test::run_until(io, [&] { return stats().reruns == 1; });
    }
    CHECK(left.expired());
}

TEST_CASE("all workers killed at once while suspects run")
{
    suspects_fixture f(single_lane(), one_second);
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        for (const int standby : test::ready_besides(f.process()))
            ::kill(standby, SIGKILL);
        f.kill();
    }
    f.check_right({f.slow});
    f.check_right(f.others);
    CHECK(f.stats().convicted == 0);
}

TEST_SUITE_END();

} // namespace test_integration_suspects
