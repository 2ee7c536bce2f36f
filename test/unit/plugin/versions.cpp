#include "plugin.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/device/graph.hpp>
#include <coaccel/device/plan.hpp>
#include <coaccel/device/seq.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace test_plugin_versions {

using namespace coaccel;
using test::await;
using test::isolated_fixture;
using test::on_each_device;

namespace {

constexpr std::uint32_t highest = 0xffffffff;

/// y = x + 2 with a function of the plug-in.
plan_description adding_plan(plugin::version wanted)
{
    plan_builder b("adding");
    const auto x = b.input<float>(2);
    const auto y = b.output<float>(2);
    b.add(memory::copy<float>{.src = x, .dst = y});
    b.add(plugin::call("add_two", wanted, inout(y)));
    const auto made = b.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    return made.value();
}

plan_description saved_and_loaded(const plan_description& d)
{
    const test::temporary_folder folder;
    REQUIRE(d.save(folder / "adding.plan"));
    const auto made = plan_description::load(folder / "adding.plan");
    REQUIRE_MESSAGE(made, made.error().message());
    return made.value();
}

void check_refused(const error_code& ec, std::string_view told)
{
    INFO("message: ", ec.message());
    CHECK(ec == errc::function_version);
    CHECK(is_caller_error(ec));
    CHECK(ec.message().find(told) != std::string::npos);
}

} // namespace

TEST_SUITE_BEGIN("plug-in versions");

TEST_CASE("a call runs if it states no version or that of the plug-in")
{
    on_each_device([](isolated_fixture& d) {
        auto y = d.upload(std::vector<float>{1, 2});
        CHECK_FALSE(d.run(plugin::call("add_two", inout(y))));
        CHECK_FALSE(d.run(plugin::call("add_two", plugin::version{}, inout(y))));
        CHECK_FALSE(d.run(plugin::call("add_two", plugin::version{3}, inout(y))));
        CHECK_FALSE(d.run(plugin::call("add_two of the highest version", plugin::version{highest}, inout(y))));
        CHECK(d.download(y.ref()) == std::vector<float>{9, 10});
    });
}

TEST_CASE("a function that is exported without a version has version 1")
{
    on_each_device([](isolated_fixture& d) {
        auto y = d.upload(std::vector<float>{1, 2});
        CHECK_FALSE(d.run(plugin::call("nothing", plugin::version{1})));
        CHECK_FALSE(d.run(plugin::call("add_two of version 1", plugin::version{1}, inout(y))));
        CHECK(d.run(plugin::call("nothing", plugin::version{2})) == errc::function_version);
    });
}

TEST_CASE("a call for an older or a later version is refused with the function and both versions")
{
    on_each_device([](isolated_fixture& d) {
        auto y = d.upload(std::vector<float>{1, 2});
        check_refused(d.run(plugin::call("add_two", plugin::version{2}, inout(y))),
                      "plugin.call: add_two: the call needs version 2 of the function, the plug-in has version 3");
        check_refused(d.run(plugin::call("add_two", plugin::version{highest}, inout(y))), "needs version 4294967295");
        CHECK(d.download(y.ref()) == std::vector<float>{1, 2});
    });
}

TEST_CASE("the version is checked before the arguments, which may differ between versions")
{
    on_each_device([](isolated_fixture& d) {
        CHECK(d.run(plugin::call("add_two", plugin::version{2}, 1.0)) == errc::function_version);
        CHECK(d.run(plugin::call("add_two", plugin::version{3}, 1.0)) == errc::argument_mismatch);
        CHECK(d.run(plugin::call("no_such", plugin::version{3})) == errc::function_missing);
    });
}

TEST_CASE("a plan keeps the version when it is saved, and runs on a device with this version")
{
    on_each_device([](isolated_fixture& d) {
        for (const auto wanted : {plugin::version{}, plugin::version{3}}) {
            const auto loaded = await(d.io, d.gpu.async_load(saved_and_loaded(adding_plan(wanted))));
            REQUIRE_MESSAGE(loaded, loaded.error().message());
            const std::vector<float> x{1, 2};
            std::vector<float> y(2);
            REQUIRE(await(d.io, loaded.value().async_run(from(x), to(y))));
            CHECK(y == std::vector<float>{3, 4});
        }
    });
}

TEST_CASE("a plan for another version is built anywhere, and refused by the device that loads it")
{
    on_each_device([](isolated_fixture& d) {
        for (const auto& plan : {adding_plan({2}), saved_and_loaded(adding_plan({2}))}) {
            const auto refused = await(d.io, d.gpu.async_load(plan));
            REQUIRE_FALSE(refused);
            check_refused(refused.error(),
                          "add_two: the call needs version 2 of the function, the plug-in has version 3");
        }
        CHECK(await(d.io, d.gpu.async_load(adding_plan({3}))).has_value());
    });
}

TEST_CASE("plans and graphs are for the version of their device, not for that of this process")
{
    const isolated_fixture other(test::with_plugin(isolation::in_process));
    isolated_fixture d(test::with_plugin(isolation::worker, COACCEL_TEST_PLUGIN("older")));
    const auto loaded = await(d.io, d.gpu.async_load(adding_plan({2})));
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    const std::vector<float> x{1, 2};
    std::vector<float> y(2);
    REQUIRE(await(d.io, loaded.value().async_run(from(x), to(y))));
    CHECK(y == std::vector<float>{1.5f, 2.5f});

    auto z = d.upload(x);
    const auto recorded = await(d.io, d.gpu.async_record(seq(plugin::call("add_two", plugin::version{2}, inout(z)))));
    REQUIRE_MESSAGE(recorded, recorded.error().message());
    CHECK_FALSE(d.run(recorded.value()));
    CHECK(d.download(z.ref()) == std::vector<float>{1.5f, 2.5f});
    const auto refused = await(d.io, d.gpu.async_record(seq(plugin::call("add_two", plugin::version{3}, inout(z)))));
    REQUIRE_FALSE(refused);
    check_refused(refused.error(), "needs version 3 of the function, the plug-in has version 2");
}

TEST_CASE("functions of a plug-in for the first version of the interface have version 1")
{
    for (const auto where : {isolation::in_process, isolation::worker}) {
        INFO("in a worker: ", where == isolation::worker);
        isolated_fixture d(test::with_plugin(where, COACCEL_TEST_PLUGIN("first_interface")));
        auto y = d.upload(std::vector<float>{0});
        CHECK_FALSE(d.run(plugin::call("fill_one", plugin::version{1}, out(y))));
        CHECK(d.download(y.ref()) == std::vector<float>{1});
        CHECK_FALSE(d.run(plugin::call("fill_one", out(y))));
        check_refused(d.run(plugin::call("fill_one", plugin::version{4711}, out(y))), "the plug-in has version 1");
    }
}

TEST_SUITE_END();

} // namespace test_plugin_versions
