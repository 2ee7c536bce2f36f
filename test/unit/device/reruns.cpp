#include "rerun_fixture.hpp"
#include "support/gate.hpp"

namespace test_device_reruns {

using namespace test::reruns;

TEST_SUITE_BEGIN("reruns");

TEST_CASE_FIXTURE(fixture, "callers of a repeatable plan notice nothing of a loss")
{
    const plan p = load();
    for (int i = 0; i < 12; ++i)
        start(p);
    lose();
    wait_for_all();
    CHECK(succeeded() == 12);
    const auto s = stats();
    CHECK(s.generation == 2);
    CHECK(s.failed == 0);
    CHECK(s.reruns >= 1);
    CHECK(s.reruns <= 4);
    CHECK(s.convicted == 0);
}

TEST_CASE_FIXTURE(fixture, "of many runs only the poisoned ones fail, each once")
{
    const plan p = load();
    for (int i = 1; i <= 40; ++i)
        start(p, i % 10 == 0 ? poison : 1);
    wait_for_all();
    CHECK(succeeded() == 36);
    CHECK(failed_with(errc::context_lost) == 4);
    for (std::size_t i = 9; i < 40; i += 10)
        CHECK(runs[i]->ec.message().starts_with("plan doubling: it ended the context while nothing else was on it, so "
                                                "it does not run again: "));
    wait_until_ready();
    CHECK(stats().convicted == 4);
    CHECK(stats().failed == 4);
}

TEST_CASE("a conviction gives back the restarts that it explains")
{
    fixture f([](device_options& o) { o.restart.max_restarts = 1; });
    const plan p = f.load();
    for (std::size_t round = 1; round <= 4; ++round) {
        f.start(p, poison);
        f.wait_for_all();
        CHECK(f.failed_with(errc::context_lost) == round);
        f.wait_until_ready();
    }
    // A loss for which no cause is found counts.
    f.start(p);
    f.lose();
    f.wait_for_all();
    CHECK(f.succeeded() == 1);
    f.start(p);
    f.lose();
    f.wait_for_all();
    CHECK(f.failed_with(errc::device_failed) == 1);
}

TEST_CASE_FIXTURE(fixture, "runs of plans that are not repeatable, or may not be repeated, are lost")
{
    const plan unmarked = load(doubling_plan(kernel, mark::none));
    CHECK_FALSE(unmarked.description().repeatable());
    const plan never = load({.rerun = rerun_policy::never});
    CHECK(never.description().repeatable());
    for (const plan& p : {unmarked, never}) {
        run& lost = start(p);
        lose();
        wait_for_all();
        CHECK(lost.failed_with(errc::context_lost));
        wait_until_ready();
        // The device has loaded the plan again.
        run& next = start(p);
        wait_for_all();
        CHECK(next.succeeded());
    }
    CHECK(stats().reruns == 0);
}

TEST_CASE_FIXTURE(fixture, "a run that may be repeated once ends with the second loss")
{
    const plan p = load({.instances = 4, .initial = 4, .rerun = rerun_policy::once});
    run& poisoned = start(p, poison);
    run& innocent = start(p);
    wait_for_all();
    CHECK(poisoned.failed_with(errc::context_lost));
    CHECK(innocent.succeeded());
    const auto all = stats();
    REQUIRE(all.plans.size() == 1);
    CHECK(all.plans.front().reruns == all.reruns);
    // The innocent run may have ended before the loss.
    CHECK(all.reruns >= 1);
    CHECK(all.plans.front().completed == 1);
    CHECK(all.plans.front().failed == 1);
}

TEST_CASE_FIXTURE(fixture, "while suspects run, other calls wait, and then run")
{
    const plan p = load();
    for (int i = 0; i < 4; ++i)
        start(p);
    lose();
    auto other = await(io, gpu.async_load(test::axpy_plan()));
    REQUIRE(other);
    const auto x = numbers(test::plan_elements);
    std::vector<float> y(test::plan_elements);
    CHECK(await(io, other.value().async_run(from(x), to(y))));
    CHECK(y == test::expected(x));
    auto b = await(io, gpu.async_upload(numbers(16)));
    REQUIRE(b);
    CHECK(await(io, gpu.async_exec(memory::fill<float>{b.value(), 1.0f})));
    CHECK(await(io, gpu.async_download(b.value())).value() == std::vector<float>(16, 1));
    wait_for_all();
    CHECK(succeeded() == 4);
}

TEST_CASE_FIXTURE(fixture, "suspects run before their plan has all instances again")
{
    const plan p = load({.instances = 8, .initial = 8});
    REQUIRE(stats().plans.front().instances == 8);
    for (int i = 0; i < 8; ++i)
        start(p);
    lose();
    test::run_until(io, [&] { return succeeded() > 0; });
    CHECK(stats().plans.front().instances < 8);
    wait_for_all();
    CHECK(succeeded() == 8);
    test::run_until(io, [&] { return stats().plans.front().instances == 8; });
}

TEST_CASE("a plan is unloaded between suspects, before their plan has all instances again")
{
    fixture f([](device_options& o) { o.host.threads = 1; });
    const plan p = f.load({.instances = 8, .initial = 8});
    const plan other = f.load(test::axpy_plan(), {});
    const auto x = f.alloc<float>(1);
    // All runs are on the context when it is lost.
    test::gate gate;
    f.gpu.async_submit(in(x), test::gate_op{&gate}, [](error_code) {});
    test::run_until(f.io, [&] { return gate.reached(1); });
    for (int i = 0; i < 8; ++i)
        f.start(p);
    test::run_until(f.io, [&] { return f.stats().in_flight == 9; });
    f.injector.poison();
    gate.open();
    test::run_until(f.io, [&] { return f.succeeded() > 0; });
    error_code unloaded = errc::no_value;
    std::size_t before = 0;
    other.async_unload([&](error_code ec) {
        unloaded = ec;
        before = f.succeeded();
    });
    test::run_until(f.io, [&] { return unloaded != errc::no_value; });
    CHECK_FALSE(unloaded);
    CHECK(before < 8);
    f.wait_for_all();
    CHECK(f.succeeded() == 8);
    CHECK(f.stats().reruns == 8);
}

TEST_CASE_FIXTURE(fixture, "ops that can be repeated are suspects too")
{
    const plan p = load();
    const auto data = numbers(16);
    error_code uploaded = errc::no_value;
    gpu.with({.retry = retry::idempotent}).async_upload(data, [&](error_code ec, const buffer<float>&) {
        uploaded = ec;
    });
    start(p, poison);
    start(p);
    lose();
    wait_for_all();
    test::run_until(io, [&] { return uploaded != errc::no_value; });
    CHECK_FALSE(uploaded);
    CHECK(succeeded() == 1);
    CHECK(failed_with(errc::context_lost) == 1);
}

TEST_CASE("without threads, too, only the poisoned run fails")
{
    fixture f([](device_options& o) { o.host.mode = host_mode::inline_; });
    const plan p = f.load();
    for (int i = 0; i < 10; ++i)
        f.start(p, i == 3 ? poison : 1);
    f.wait_for_all();
    CHECK(f.succeeded() == 9);
    CHECK(f.runs[3]->failed_with(errc::context_lost));
}

TEST_SUITE_END();

} // namespace test_device_reruns
