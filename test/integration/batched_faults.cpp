#include "poison_fixture.hpp"

#include <coaccel/serve/dynamic_batcher.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <doctest/doctest.h>

#include <string>

namespace test_integration_batched_faults {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::dynamic_batcher;
using test::poison;
using test::poison_runs;

struct fixture : test::poison_fixture {
    explicit fixture(const device_options& o = test::poison_options()) : poison_fixture(o) {}

    dynamic_batcher make(serve::batcher_options options = {}, std::vector<device> others = {})
    {
        others.push_back(gpu);
        const std::vector models{test::poisonable_model()};
        auto made = test::await(io, dynamic_batcher::async_create(io.get_executor(), others, models, options));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    std::shared_ptr<test::poison_run> start(const dynamic_batcher& b, poison what = poison::none, float second = 0,
                                            const exec_options& how = {})
    {
        auto r = std::make_shared<test::poison_run>();
        r->x = test::poison_input(what, second);
        auto on_end = [r](error_code ec) {
            ++r->completions;
            r->ec = ec;
        };
        b.with(how).async_run(from(r->x), to(r->y), asio::bind_cancellation_slot(r->signal.slot(), on_end));
        return r;
    }

    poison_runs start_many(const dynamic_batcher& b, int count)
    {
        poison_runs all;
        for (int i = 0; i < count; ++i)
            all.push_back(start(b, poison::none, static_cast<float>(i)));
        return all;
    }
};

void append(poison_runs& to, const poison_runs& more)
{
    to.insert(to.end(), more.begin(), more.end());
}

} // namespace

TEST_SUITE_BEGIN("isolated batches");

TEST_CASE("a poisoned member of a batch costs exactly one error and at most three contexts")
{
    for (const int standby : {0, 1})
        for (const auto what : test::deadly) {
            CAPTURE(standby);
            CAPTURE(int(what));
            fixture f(test::poison_options(standby));
            const auto b = f.make({.plan = {.poison_limit = 1}});
            auto innocent = f.start_many(b, 20);
            const auto poisoned = f.start(b, what);
            append(innocent, f.start_many(b, 20));
            CHECK(f.outcome(poisoned) == errc::context_lost);
            f.check_right(innocent);
            const auto s = f.stats();
            CHECK(s.restarts <= 3);
            CHECK(s.convicted == 2);
            CHECK(b.stats().split == 1);
            CHECK(b.stats().failed == 1);
            CHECK(b.stats().completed == 40);
            // The batch and its member count as one poisoning.
            CHECK(s.quarantined_plans == 0);
            f.check_right(f.start_many(b, 10));
        }
}

TEST_CASE("each poisoned member of several batches gets its error")
{
    fixture f;
    const auto b = f.make({.plan = {.poison_limit = 100}});
    poison_runs innocent;
    poison_runs poisoned;
    for (int i = 0; i < 3; ++i) {
        append(innocent, f.start_many(b, 7));
        poisoned.push_back(f.start(b, poison::abort));
    }
    for (const auto& r : poisoned)
        CHECK(f.outcome(r) == errc::context_lost);
    f.check_right(innocent);
    CHECK(b.stats().failed == 3);
}

TEST_CASE("a poisoned row is not repeated as padding in later batches")
{
    fixture f;
    const auto b = f.make({.max_in_flight = 1, .plan = {.poison_limit = 100}});
    CHECK(f.outcome(f.start(b, poison::abort)) == errc::context_lost);
    f.check_right(f.start_many(b, 1));
    const auto before = f.stats().restarts;
    f.check_right(f.start_many(b, 3));
    f.check_right(f.start_many(b, 1));
    CHECK(f.stats().restarts == before);
}

TEST_CASE("a worker that is killed from outside costs nothing but time")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        fixture f(test::poison_options(standby));
        const auto b = f.make();
        f.send(SIGSTOP);
        const auto all = f.start_many(b, 60);
        f.kill();
        f.check_right(all);
        CHECK(b.stats().failed == 0);
        CHECK(b.stats().split == 0);
        CHECK(f.stats().convicted == 0);
        f.check_right(f.start_many(b, 20));
    }
}

TEST_CASE("a member that is cancelled while its batch is split is left out")
{
    fixture f;
    const auto b = f.make({.plan = {.poison_limit = 100}});
    auto all = f.start_many(b, 6);
    const auto poisoned = f.start(b, poison::abort);
    test::run_until(f.io, [&] { return b.stats().split == 1; });
    all.back()->signal.emit(asio::cancellation_type::terminal);
    test::run_until(f.io, [&] { return all.back()->ended(); });
    CHECK(f.outcome(poisoned) == errc::context_lost);
    if (all.back()->ec)
        all.pop_back();
    f.check_right(all);
}

TEST_CASE("a plan with too many poisoned batches is quarantined until it is revived, and its innocents are answered")
{
    fixture f;
    const auto b = f.make({.max_in_flight = 1, .plan = {.poison_limit = 2}});
    for (int i = 0; i < 3; ++i) {
        auto innocent = f.start_many(b, 3);
        const auto poisoned = f.start(b, poison::abort);
        CHECK(f.outcome(poisoned) == errc::context_lost);
        f.check_right(innocent);
    }
    const auto refused = f.start_many(b, 8);
    for (const auto& r : refused)
        CHECK(f.outcome(r) == errc::plan_quarantined);
    REQUIRE(test::await(f.io, b.async_revive()));
    f.check_right(f.start_many(b, 8));
}

TEST_CASE("without reruns a lost batch is answered with context_lost")
{
    fixture f;
    const auto b = f.make({.plan = {.rerun = rerun_policy::never}});
    auto all = f.start_many(b, 3);
    all.push_back(f.start(b, poison::abort));
    for (const auto& r : all)
        CHECK(f.outcome(r) == errc::context_lost);
    f.check_right(f.start_many(b, 3));
    CHECK(b.stats().split == 0);
}

TEST_CASE("deadlines hold while the device is repaired")
{
    fixture f(test::poison_options(0));
    const auto b = f.make();
    f.send(SIGSTOP);
    const auto late = f.start(b, poison::none, 0, within(20ms));
    CHECK(f.outcome(late) == errc::deadline_exceeded);
    f.kill();
    f.check_right(f.start_many(b, 5));
}

TEST_CASE("with two devices, one that is being repaired gets no batches")
{
    fixture f;
    fixture::isolated_fixture* base = &f;
    auto other = test::make_device(f.io, test::poison_options(0));
    const auto b = f.make({}, {other});
    f.check_right(f.start_many(b, 40));
    base->send(SIGKILL);
    f.check_right(f.start_many(b, 100));
    CHECK(b.stats().failed == 0);
    other = {};
}

TEST_CASE("a batcher whose device fails for good answers at once, and works again when it is revived")
{
    auto o = test::poison_options(0);
    o.restart.max_restarts = 0;
    fixture f(o);
    const auto b = f.make();
    f.check_right(f.start_many(b, 3));
    f.kill();
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(f.outcome(f.start(b)) == errc::device_failed);
    REQUIRE(test::await(f.io, f.gpu.async_revive()));
    f.check_right(f.start_many(b, 3));
}

TEST_SUITE_END();

} // namespace test_integration_batched_faults
