#include "rerun_fixture.hpp"

#include <regex>
#include <string>

// Plans whose loading ends the context, each time.
namespace test_device_fatal_loads {

using namespace test::reruns;

namespace {

struct fatal_fixture : fixture {
    explicit fatal_fixture(int max_restarts, host_mode mode = host_mode::pool)
        : fixture([=](device_options& o) {
              o.restart.max_restarts = max_restarts;
              // A load that ends the context is alone for longer than this, however slow the machine is.
              o.context.hang_timeout = std::chrono::seconds(58);
              o.host.mode = mode;
          })
    {}

    result<plan> try_to_load(const plan_description& d) { return await(io, gpu.async_load(d)); }

    /// A load that is refused at once, and costs no context.
    template <class Description>
    void check_refused(const Description& d, const std::string& name)
    {
        // The context that follows the last loss.
        test::run_until(io, [&] { return gpu.status().state == device_state::ready; });
        const auto before = stats();
        const auto made = await(io, gpu.async_load(d));
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::plan_quarantined);
        static const std::regex seconds("another [0-9]+ s");
        CHECK(std::regex_replace(made.error().message(), seconds, "another N s") ==
              "async_load: " + name +
                  " is refused for another N s, because loading it ended the context of the device 2 times while "
                  "nothing else was on it; device::async_revive permits it at once");
        const auto after = stats();
        CHECK(after.generation == before.generation);
        CHECK(after.convicted == before.convicted);
        CHECK(after.plans.size() == before.plans.size());
    }

    void check_axpy(const plan& p)
    {
        const auto x = numbers(test::plan_elements);
        std::vector<float> y(test::plan_elements);
        const auto ended = await(io, p.async_run(from(x), to(y)));
        REQUIRE_MESSAGE(ended, ended.error().message());
        CHECK(y == test::expected(x));
    }
};

} // namespace

TEST_SUITE_BEGIN("fatal loads");

TEST_CASE("a plan whose loading ends each context is an error of its caller, and costs no restart")
{
    for (const auto mode : {host_mode::pool, host_mode::inline_}) {
        // So that a second loss without an explanation would end the device.
        fatal_fixture f(1, mode);
        const plan other = f.load(test::axpy_plan(), {});
        for (int round = 1; round <= 3; ++round) {
            f.injector.poison_loads("doubling");
            const auto made = f.try_to_load(doubling_plan(f.kernel));
            REQUIRE_FALSE(made);
            CHECK(made.error() == errc::context_lost);
            CHECK(made.error().message().starts_with(
                "plan doubling: loading it ended the context 2 times while nothing else was on it: "));
            f.check_axpy(other);
            CHECK(f.stats().convicted == 2 * static_cast<std::uint64_t>(round));
            CHECK(f.stats().generation == 1 + 3 * static_cast<generation>(round));
            f.check_refused(doubling_plan(f.kernel), "plan doubling");
            REQUIRE(await(f.io, f.gpu.async_revive()));
        }
        CHECK(f.stats().plans.size() == 1);
        f.injector.poison_loads("");
        CHECK(f.try_to_load(doubling_plan(f.kernel)));
    }
}

TEST_CASE("a plan whose load was refused is refused under any name and in a set until the device is revived")
{
    fatal_fixture f(1);
    const auto doubling = doubling_plan(f.kernel);
    f.injector.poison_loads("doubling");
    CHECK(f.try_to_load(doubling).error() == errc::context_lost);
    // The load would succeed.
    f.injector.poison_loads("");
    f.check_refused(doubling, "plan doubling");
    const auto add = [&](plan_builder& b) {
        const auto x = b.input<float>(n);
        const auto y = b.output<float>(n);
        b.add(pure(jit::launch(f.kernel, {.grid = {1}, .block = {1}}, in(x), out(y))));
    };
    plan_builder renamed("renamed");
    add(renamed);
    const auto same = renamed.finish().value();
    REQUIRE(same.id() == doubling.id());
    f.check_refused(same, "plan renamed");
    plan_set_builder set("pair");
    auto& good = set.plan("good");
    good.add(memory::fill<float>{.dst = good.output<float>(16)});
    add(set.plan("bad"));
    const auto both = set.finish().value();
    f.check_refused(both, "plan pair.bad");
    // Other plans are loaded.
    const plan other = f.load(test::axpy_plan(), {});
    f.check_axpy(other);
    REQUIRE(await(f.io, f.gpu.async_revive()));
    CHECK(await(f.io, f.gpu.async_load(both)));
    CHECK(f.try_to_load(same));
    const plan again = f.load();
    f.start(again);
    f.wait_for_all();
    CHECK(f.succeeded() == 1);
    CHECK(f.stats().generation == 4);
}

TEST_CASE("loads of the same plan that wait end with the one that is refused, and cost no further contexts")
{
    fatal_fixture f(1);
    const auto doubling = doubling_plan(f.kernel);
    plan_set_builder set("pair");
    auto& good = set.plan("good");
    good.add(memory::fill<float>{.dst = good.output<float>(16)});
    auto& bad = set.plan("bad");
    const auto x = bad.input<float>(n);
    const auto y = bad.output<float>(n);
    bad.add(pure(jit::launch(f.kernel, {.grid = {1}, .block = {1}}, in(x), out(y))));
    const auto both = set.finish().value();
    f.injector.poison_loads("doubling");
    std::vector<error_code> ended(4, errc::no_value);
    for (std::size_t i = 0; i < 2; ++i)
        f.gpu.async_load(doubling, [&ended, i](error_code ec, const plan&) { ended[i] = ec; });
    f.gpu.async_load(both, [&ended](error_code ec, const plan_set&) { ended[2] = ec; });
    f.gpu.async_load(test::axpy_plan(), [&ended](error_code ec, const plan&) { ended[3] = ec; });
    test::run_until(f.io, [&] { return std::ranges::count(ended, error_code(errc::no_value)) == 0; });
    CHECK(ended[0] == errc::context_lost);
    CHECK(ended[1] == errc::plan_quarantined);
    CHECK(ended[1].message().starts_with("async_load: plan doubling is refused for another "));
    CHECK(ended[2] == errc::plan_quarantined);
    CHECK(ended[2].message().starts_with("async_load: plan pair.bad is refused for another "));
    CHECK_FALSE(ended[3]);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::ready; });
    CHECK(f.stats().convicted == 2);
    CHECK(f.stats().generation == 4);
}

TEST_CASE("runs beside a load that ends contexts succeed")
{
    fatal_fixture f(1);
    const plan innocent = f.load();
    f.injector.poison_loads("axpy");
    for (int i = 0; i < 40; ++i)
        f.start(innocent);
    const auto made = f.try_to_load(test::axpy_plan());
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::context_lost);
    for (int i = 0; i < 10; ++i)
        f.start(innocent);
    f.wait_for_all();
    CHECK(f.succeeded() == 50);
    CHECK(f.gpu.status().state == device_state::ready);
}

TEST_CASE("a plan that can no longer be loaded after a loss is quarantined, and the others go on")
{
    // One for the loss before, one for the first loss with the load.
    fatal_fixture f(2);
    const plan doubling = f.load();
    const plan other = f.load(test::axpy_plan(), {});
    f.injector.poison_loads("doubling");
    f.start(doubling);
    f.lose();
    f.wait_for_all();
    CHECK(f.failed_with(errc::plan_quarantined) + f.succeeded() == 1);
    f.check_axpy(other);
    test::run_until(f.io, [&] { return doubling.quarantined(); });
    CHECK_FALSE(other.quarantined());
    auto& refused = f.start(doubling);
    f.wait_for_all();
    CHECK(refused.failed_with(errc::plan_quarantined));
    CHECK(refused.ec.message() ==
          "plan doubling: loading it ended the context of the device 2 times while nothing else was on it");
    auto s = f.stats();
    CHECK(s.state == device_state::ready);
    CHECK(s.quarantined_plans == 1);
    CHECK(s.convicted == 2);
    f.check_refused(doubling_plan(f.kernel), "plan doubling");
    // It is not loaded after further losses either.
    CHECK(await(f.io, f.gpu.async_replace()));
    f.check_axpy(other);
    CHECK(f.stats().convicted == 2);
    // Revived too early.
    REQUIRE(await(f.io, doubling.async_revive()));
    auto& waiting = f.start(doubling);
    f.wait_for_all();
    CHECK(waiting.failed_with(errc::plan_quarantined));
    f.injector.poison_loads("");
    REQUIRE(await(f.io, doubling.async_revive()));
    auto& last = f.start(doubling);
    f.wait_for_all();
    CHECK(last.succeeded());
    f.check_axpy(other);
    CHECK(f.try_to_load(doubling_plan(f.kernel)));
}

TEST_CASE("a set with a plan whose loading ends each context is refused as a whole")
{
    fatal_fixture f(1);
    const plan innocent = f.load();
    plan_set_builder set("pair");
    for (const char* name : {"good", "bad"}) {
        auto& b = set.plan(name);
        b.add(memory::fill<float>{.dst = b.output<float>(16)});
    }
    const auto both = set.finish().value();
    const auto& plans = detail::plan_set_access::data(both)->plans;
    f.injector.poison_loads(detail::plan_access::data(plans.back().plan)->name);
    const auto made = await(f.io, f.gpu.async_load(both));
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::context_lost);
    CAPTURE(made.error().message());
    CHECK(made.error().message().find("bad") != std::string::npos);
    CHECK(made.error().message().find("loading it ended the context 2 times") != std::string::npos);
    f.start(innocent);
    f.wait_for_all();
    CHECK(f.succeeded() == 1);
    CHECK(f.stats().plans.size() == 1);
}

TEST_CASE("a load that its caller gives up while it ends contexts leaves nothing behind")
{
    fatal_fixture f(1);
    f.injector.poison_loads("doubling");
    error_code ec = errc::no_value;
    asio::cancellation_signal signal;
    const auto d = doubling_plan(f.kernel);
    f.gpu.async_load(d, asio::bind_cancellation_slot(signal.slot(), [&](error_code e, const plan&) { ec = e; }));
    test::run_until(f.io, [&] { return f.injector.played() == 1; });
    signal.emit(asio::cancellation_type::terminal);
    test::run_until(f.io, [&] { return ec != errc::no_value; });
    CHECK(ec == operation_aborted);
    f.injector.poison_loads("");
    const auto later = f.try_to_load(d);
    CHECK(later);
    CHECK(f.stats().plans.size() == 1);
}

TEST_SUITE_END();

} // namespace test_device_fatal_loads
