#include "support/device_fixture.hpp"
#include "support/example_plans.hpp"
#include "support/numbers.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <numeric>
#include <string_view>

namespace test_ops_plan_runs {

namespace {

using namespace coaccel;
using test::await;
using test::axpy_plan;
using test::counting_plan;
using test::expected;
using test::numbers;

constexpr std::size_t n = test::plan_elements;

plan load(test::device_fixture& f, const plan_description& d, plan_options how = {})
{
    auto made = await(f.io, f.gpu.async_load(d, how));
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

TEST_SUITE_BEGIN("plan runs");

TEST_CASE("a loaded plan computes, as often as it is run")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const plan p = load(f, axpy_plan());
        CHECK(p.description() == axpy_plan());
        CHECK(p.get_device() == f.gpu);
        for (int i = 0; i < 3; ++i) {
            auto x = numbers(n);
            x[0] = static_cast<float>(i);
            std::vector<float> y(n);
            REQUIRE(await(f.io, p.async_run(from(x), to(y))));
            CHECK(y == expected(x));
        }
    }
}

TEST_CASE("a plan from a file computes the same, and survives the file")
{
    for (const auto& options : test::devices_under_test()) {
        const test::temporary_folder folder;
        const auto path = folder / "axpy.plan";
        constexpr std::size_t count = 100000;
        REQUIRE(axpy_plan(count).save(path));
        test::device_fixture f(options);
        for (const auto check : {content_check::hash, content_check::none}) {
            const auto described = plan_description::load(path, check);
            REQUIRE_MESSAGE(described, described.error().message());
            const plan p = load(f, described.value());
            CHECK(p.description() == axpy_plan(count));
            const auto x = numbers(count);
            std::vector<float> y(count);
            REQUIRE(await(f.io, p.async_run(from(x), to(y))));
            CHECK((y == expected(x)));
        }
        const auto described = plan_description::load(path);
        REQUIRE(described);
        REQUIRE(std::filesystem::remove(path));
        const plan p = load(f, described.value());
        const auto x = numbers(count);
        std::vector<float> y(count);
        REQUIRE(await(f.io, p.async_run(from(x), to(y))));
        CHECK((y == expected(x)));
    }
}

TEST_CASE("a plan from a file has its states, and its random numbers")
{
    for (const auto& options : test::devices_under_test()) {
        plan_builder b("random");
        const auto s = b.state<float>(std::vector<float>(n, 10));
        const auto r = b.scratch<float>(n);
        const auto y = b.output<float>(n);
        b.add(rand::uniform<float>{.dst = r, .from = rand::make_generator({.seed = 5})});
        b.add(blas::axpy<float>{.x = r, .y = s, .n = n});
        b.add(memory::copy<float>{s, y});
        const auto described = b.finish().value();
        const test::temporary_folder folder;
        REQUIRE(described.save(folder / "random.plan"));
        const auto loaded = plan_description::load(folder / "random.plan");
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        test::device_fixture f(options);
        const plan one = load(f, described);
        const plan other = load(f, loaded.value());
        for (int i = 0; i < 2; ++i) {
            std::vector<float> y1(n), y2(n);
            REQUIRE(await(f.io, one.async_run(to(y1))));
            REQUIRE(await(f.io, other.async_run(to(y2))));
            CHECK(y1[0] > 10);
            CHECK(y1 == y2);
        }
    }
}

TEST_CASE("arguments of every size are copied")
{
    for (const auto& options : test::devices_under_test())
        for (const std::size_t count : {std::size_t(1), std::size_t(65536), std::size_t(65537), std::size_t(1) << 20}) {
            test::device_fixture f(options);
            const plan p = load(f, axpy_plan(count));
            const auto x = numbers(count);
            std::vector<float> y(count);
            REQUIRE(await(f.io, p.async_run(from(x), to(y))));
            CHECK((y == expected(x)));
        }
}

TEST_CASE("arguments that together are too many for pinned memory are copied")
{
    constexpr std::size_t count = 6;
    constexpr std::size_t elements = detail::largest_staged_argument / sizeof(float);
    plan_builder b("many");
    for (std::size_t i = 0; i < count; ++i) {
        const auto x = b.input<float>(elements - i);
        const auto y = b.output<float>(elements - i);
        b.add(memory::copy<float>{x, y});
        b.add(blas::scal<float>{.x = y, .n = elements - i, .alpha = static_cast<float>(i + 1)});
    }
    const auto description = b.finish().value();
    CHECK(description.memory().staged <= std::uint64_t(2) << 20);
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const plan p = load(f, description);
        std::vector<std::vector<float>> x;
        std::vector<std::vector<float>> y;
        for (std::size_t i = 0; i < count; ++i) {
            x.push_back(numbers(elements - i));
            y.emplace_back(elements - i);
        }
        REQUIRE(await(f.io, p.async_run(from(x[0]), from(x[1]), from(x[2]), from(x[3]), from(x[4]), from(x[5]),
                                        to(y[0]), to(y[1]), to(y[2]), to(y[3]), to(y[4]), to(y[5]))));
        for (std::size_t i = 0; i < count; ++i) {
            for (float& v : x[i])
                v *= static_cast<float>(i + 1);
            CHECK((y[i] == x[i]));
        }
    }
}

TEST_CASE("many runs at once use several instances")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const plan p = load(f, axpy_plan(), {.instances = 5});
        constexpr int runs = 40;
        std::vector<std::vector<float>> x(runs, numbers(n));
        std::vector<std::vector<float>> y(runs, std::vector<float>(n));
        int ended = 0;
        for (int i = 0; i < runs; ++i) {
            x[i][0] = static_cast<float>(i);
            p.async_run(from(x[i]), to(y[i]), [&](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
        }
        test::run_until(f.io, [&] { return ended == runs; });
        for (int i = 0; i < runs; ++i)
            CHECK(y[i] == expected(x[i]));
    }
}

TEST_CASE("a state keeps its content, and the runs of its plan happen in order")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const plan p = load(f, counting_plan(), {.instances = 4, .initial = 4});
        constexpr int runs = 20;
        const std::vector<float> one{1};
        std::vector<std::vector<float>> y(runs, std::vector<float>(1));
        int ended = 0;
        for (auto& to_here : y)
            p.async_run(from(one), to(to_here), [&](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
        test::run_until(f.io, [&] { return ended == runs; });
        for (int i = 0; i < runs; ++i)
            CHECK(y[i][0] == 11 + i);
    }
}

TEST_CASE("the plans of a set work on one state, in the order of their runs")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const auto live = [&] { return await(f.io, f.gpu.async_stats()).value().live_buffers; };
        const auto before = live();
        auto loaded = await(f.io, f.gpu.async_load(test::counting_set(), plan_options{.instances = 3}));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        const plan_set s = std::move(loaded).value();
        // The state, the constant, and the memory of three instances; no plan has changed the state yet.
        CHECK(live() == before + 5);
        std::vector<float> first(1);
        REQUIRE(await(f.io, s["read"].async_run(to(first))));
        CHECK(first[0] == 10);
        constexpr int runs = 30;
        const std::vector<float> one{1};
        std::vector<std::vector<float>> y(runs, std::vector<float>(1));
        int ended = 0;
        const auto note = [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        };
        const auto name = [](int i) { return i % 3 == 2 ? "read" : i % 7 == 3 ? "twice" : "add"; };
        for (int i = 0; i < runs; ++i) {
            if (i % 3 == 2)
                s[name(i)].async_run(to(y[i]), note);
            else
                s[name(i)].async_run(from(one), to(y[i]), note);
        }
        test::run_until(f.io, [&] { return ended == runs; });
        float total = 10;
        for (int i = 0; i < runs; ++i) {
            const std::string_view which = name(i);
            total = which == "read" ? total : (which == "twice" ? 2 * total : total) + 1;
            CHECK(y[i][0] == total);
        }
        REQUIRE(await(f.io, s.async_unload()));
        CHECK(live() == before);
    }
}

TEST_CASE("a large input of one plan of a set does not delay its run behind those of the others")
{
    constexpr std::size_t large = std::size_t(1) << 20;
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        plan_set_builder set;
        const auto cache = set.state<float>(large, "cache");
        plan_builder& fill = set.plan("fill");
        fill.add(memory::copy<float>{fill.input<float>(large), cache});
        plan_builder& read = set.plan("read");
        read.add(memory::copy<float>{cache.subspan(large - 1, 1), read.output<float>(1)});
        auto loaded = await(f.io, f.gpu.async_load(set.finish().value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        const plan_set s = std::move(loaded).value();
        constexpr int runs = 8;
        std::vector<std::vector<float>> x(runs);
        std::vector<std::vector<float>> y(runs, std::vector<float>(1));
        int ended = 0;
        const auto note = [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        };
        for (int i = 0; i < runs; ++i) {
            x[i].assign(large, static_cast<float>(i + 1));
            s["fill"].async_run(from(x[i]), note);
            s["read"].async_run(to(y[i]), note);
        }
        test::run_until(f.io, [&] { return ended == 2 * runs; });
        for (int i = 0; i < runs; ++i)
            CHECK(y[i][0] == static_cast<float>(i + 1));
    }
}

TEST_CASE("a chain of products has the result of single ops")
{
    constexpr std::size_t side = 64;
    constexpr int length = 12;
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        std::vector<float> w(side * side);
        for (std::size_t i = 0; i < w.size(); ++i)
            w[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5) / 32;
        plan_builder b;
        const auto weights = b.constant<float>(w);
        auto last = b.input<float>(side);
        const auto y = b.output<float>(side);
        for (int i = 0; i < length; ++i) {
            const auto next = i == length - 1 ? y : b.scratch<float>(side);
            b.add(blas::gemv<float>{.a = weights, .x = last, .y = next, .m = side, .n = side});
            last = next;
        }
        const plan p = load(f, b.finish().value(), {.instances = 8, .initial = 2});

        const auto x = numbers(side);
        auto on_device = f.upload(w);
        auto from_here = f.upload(x);
        auto to_here = f.alloc<float>(side);
        for (int i = 0; i < length; ++i) {
            REQUIRE(f.exec(blas::gemv<float>{.a = on_device, .x = from_here, .y = to_here, .m = side, .n = side}));
            std::swap(from_here, to_here);
        }
        const auto wanted = f.download(from_here);
        for (int i = 0; i < 5; ++i) {
            std::vector<float> got(side);
            REQUIRE(await(f.io, p.async_run(from(x), to(got))));
            CHECK(got == wanted);
        }
    }
}

TEST_CASE("ops that cannot be part of a graph run in a plan too")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const rand::generator_options how{.seed = 5};
        // The plan has its own copy of the generator.
        const auto generator = rand::make_generator(how);
        plan_builder b;
        const auto y = b.output<float>(1024);
        const auto largest = b.output<float>(1);
        b.add(rand::uniform<float>{.dst = y, .from = generator});
        b.add(store_reply(blas::asum<float>{.x = y, .n = 1024}, largest));
        const plan p = load(f, b.finish().value());

        auto z = f.alloc<float>(1024);
        std::vector<float> got(1024);
        std::vector<float> sum(1);
        for (int i = 0; i < 3; ++i) {
            REQUIRE(f.exec(rand::uniform<float>{.dst = z, .from = generator}));
            REQUIRE(await(f.io, p.async_run(to(got), to(sum))));
            CHECK(got == f.download(z));
            CHECK(sum[0] == doctest::Approx(f.exec(blas::asum<float>{.x = z, .n = 1024}).value()));
        }
    }
}

TEST_CASE("the memory of an unloaded plan can be used again")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const auto live = [&] { return await(f.io, f.gpu.async_stats()).value().live_buffers; };
        const auto before = live();
        for (int i = 0; i < 3; ++i) {
            const plan p = load(f, axpy_plan(), {.instances = 4, .initial = 4});
            CHECK(live() == before + 5);
            std::vector<float> y(n);
            const auto x = numbers(n);
            REQUIRE(await(f.io, p.async_run(from(x), to(y))));
            CHECK(y == expected(x));
            REQUIRE(await(f.io, p.async_unload()));
            CHECK(live() == before);
        }
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_ops_plan_runs
