#include "rerun_fixture.hpp"

namespace test_device_rerun_endings {

using namespace test::reruns;

TEST_SUITE_BEGIN("reruns: limits and endings");

TEST_CASE_FIXTURE(fixture, "too many convictions within a minute put a plan into quarantine until it is revived")
{
    const plan p = load({.instances = 1, .initial = 1, .poison_limit = 2});
    const plan other = load();
    for (int round = 1; round <= 3; ++round) {
        runs.clear();
        run& poisoned = start(p, poison);
        // It waits for the instance.
        run& waiting = start(p);
        run& elsewhere = start(other);
        wait_for_all();
        wait_until_ready();
        CHECK(poisoned.failed_with(errc::context_lost));
        CHECK(p.quarantined() == (round == 3));
        CHECK(waiting.failed_with(errc::plan_quarantined) == (round == 3));
        CHECK(waiting.succeeded() == (round != 3));
        CHECK(elsewhere.succeeded());
    }
    CHECK(runs[1]->ec.message() == "plan doubling: more than 2 runs ended the context of the device within a minute");
    CHECK(runs[1]->ec == fault::stopped);
    run& refused = start(p);
    wait_for_all();
    CHECK(refused.failed_with(errc::plan_quarantined));
    CHECK(stats().quarantined_plans == 1);
    CHECK_FALSE(other.quarantined());

    CHECK(await(io, p.async_revive()));
    CHECK_FALSE(p.quarantined());
    CHECK(stats().quarantined_plans == 0);
    run& again = start(p);
    wait_for_all();
    CHECK(again.succeeded());
    CHECK(await(io, p.async_revive()));
    CHECK(await(io, p.async_unload()));
    CHECK(await(io, p.async_revive()).error() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(slow_to_return, "a suspect that waits for the next context can be cancelled, and has its deadline")
{
    const plan p = load();
    run& cancelled = start(p);
    run& expires = start(p, 1, {.deadline = exec_options::clock::now() + 300ms});
    run& stays = start(p);
    lose();
    test::run_until(io, [&] { return gpu.status().state == device_state::rebuilding; });
    CHECK(cancelled.ends + expires.ends + stays.ends == 0);
    cancelled.signal.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return cancelled.ends + expires.ends == 2; });
    CHECK(cancelled.ec == operation_aborted);
    CHECK(expires.ec == errc::deadline_exceeded);
    CHECK(stays.ends == 0);
    SUBCASE("until the device is abandoned")
    {
        CHECK(await(io, gpu.async_shutdown(shutdown::abandon)));
        wait_for_all();
        CHECK(stays.failed_with(errc::device_stopped));
    }
    SUBCASE("until all calls are cancelled")
    {
        gpu.cancel();
        wait_for_all();
        CHECK(stays.ec == operation_aborted);
    }
    CHECK(await(io, gpu.async_shutdown(shutdown::abandon)));
}

TEST_CASE("suspects of a device that has used up its restarts end with device_failed")
{
    fixture f([](device_options& o) { o.restart.max_restarts = 0; });
    const plan p = f.load();
    for (int i = 0; i < 6; ++i)
        f.start(p);
    f.lose();
    f.wait_for_all();
    CHECK(f.succeeded() + f.failed_with(errc::device_failed) == 6);
    CHECK(f.failed_with(errc::device_failed) >= 1);
}

TEST_CASE_FIXTURE(fixture, "a device that drains repeats its runs first")
{
    const plan p = load({.instances = 2, .initial = 2});
    for (int i = 0; i < 5; ++i)
        start(p, i == 2 ? poison : 1);
    CHECK(await(io, gpu.async_shutdown()));
    CHECK(succeeded() == 4);
    CHECK(failed_with(errc::context_lost) == 1);
}

TEST_CASE_FIXTURE(fixture, "a replacement that is requested while suspects run comes after them")
{
    const plan p = load();
    for (int i = 0; i < 4; ++i)
        start(p);
    lose();
    CHECK(await(io, gpu.async_replace()));
    wait_for_all();
    CHECK(succeeded() == 4);
}

TEST_CASE_FIXTURE(fixture, "a run of a plan that is being unloaded is lost")
{
    const plan p = load();
    exec_options how;
    SUBCASE("") {}
    SUBCASE("even if it may be repeated otherwise")
    {
        how.retry = retry::idempotent;
    }
    run& r = start(p, poison, how);
    error_code unloaded = errc::no_value;
    p.async_unload([&](error_code ec) { unloaded = ec; });
    wait_for_all();
    test::run_until(io, [&] { return unloaded != errc::no_value; });
    CHECK_FALSE(unloaded);
    CHECK(r.failed_with(errc::context_lost));
}

TEST_CASE_FIXTURE(fixture, "a suspect that never ends keeps other calls from the device for a few seconds only")
{
    const plan p = load();
    hanging_calls = 0;
    run& hangs = start(p, hanging, {.deadline = exec_options::clock::now() + 30s});
    test::run_until(io, [&] { return injector.played() == 2; });
    run& other = start(p);
    test::run_until(io, [&] { return other.ends == 1; });
    CHECK(other.succeeded());
    CHECK(hangs.ends == 0);
    // A loss afterwards makes it a suspect again.
    start(p);
    lose();
    wait_for_all();
    CHECK(hangs.succeeded());
}

TEST_CASE_FIXTURE(fixture, "runs that have been started are repeated although their plan has no handles any more")
{
    plan p = load();
    for (int i = 0; i < 4; ++i)
        start(p, i == 2 ? poison : 1);
    p = {};
    wait_for_all();
    CHECK(succeeded() == 3);
    CHECK(failed_with(errc::context_lost) == 1);
    // Then the plan is unloaded.
    test::run_until(io, [&] { return stats().live_buffers == 0; });
}

TEST_CASE("when the runs have ended, nothing keeps the executor running")
{
    fixture f([](device_options& o) { o.context.hang_timeout = 1h; });
    const plan p = f.load({.instances = 1, .initial = 1, .suspect_after = {.factor = 2, .at_least = 1h}});
    // The first one tells how long runs take.
    for (int i = 0; i < 2; ++i) {
        f.start(p);
        f.wait_for_all();
    }
    SUBCASE("that could have been overdue") {}
    SUBCASE("that were alone")
    {
        f.start(p);
        f.lose();
        f.wait_for_all();
    }
    CHECK(f.succeeded() == f.runs.size());
    f.io.restart();
    f.io.run_for(2s);
    CHECK(f.io.stopped());
}

TEST_CASE_FIXTURE(fixture, "options of reruns out of range are refused with their name and value")
{
    const auto refusal = [&](const plan_options& how) {
        const auto made = await(io, gpu.async_load(doubling_plan(kernel), how));
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::invalid_option);
        return made.error().message();
    };
    CHECK(refusal({.poison_limit = 0}) == "poison_limit is 0; it must be at least 1");
    CHECK(refusal({.rerun = static_cast<rerun_policy>(9)}) == "rerun is 9; it must be one of its enumerators");
    CHECK(refusal({.suspect_after = {.factor = 1}}) == "suspect_after.factor is 1; it must be 0 or at least 2");
    CHECK(refusal({.suspect_after = {.factor = 3, .at_least = 0ms}}) ==
          "suspect_after.at_least is 0; it must be at least 1 ms");
    CHECK(refusal({.suspect_after = {.factor = 3}}) ==
          "async_load: suspect_after needs context.hang_timeout, which ends a run that never ends");
}

TEST_CASE("calls of an empty plan name it")
{
    std::promise<error_code> told;
    plan().async_revive([&](error_code ec) { told.set_value(ec); });
    const auto ec = told.get_future().get();
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message() == "plan: it is empty: default-constructed or moved from");
    CHECK_FALSE(plan().quarantined());
}

TEST_SUITE_END();

} // namespace test_device_rerun_endings
