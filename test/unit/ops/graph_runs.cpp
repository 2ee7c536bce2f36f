#include "support/device_fixture.hpp"
#include "support/numbers.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

namespace test_ops_graph_runs {

namespace {

using namespace coaccel;
using test::await;
using test::numbers;

constexpr std::size_t count = 1000;

graph record(test::device_fixture& f, op_list ops)
{
    auto made = await(f.io, f.gpu.async_record(std::move(ops)));
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

/// y = y + x, then z = y.
struct sum_graph {
    explicit sum_graph(test::device_fixture& f)
        : x(f.upload(numbers(count))), y(f.upload(std::vector<float>(count))), z(f.alloc<float>(count))
    {
        auto made = await(f.io, f.gpu.async_record(seq(blas::axpy<float>{.x = x, .y = y, .n = count, .alpha = 1},
                                                       memory::copy<float>{y, z})));
        REQUIRE_MESSAGE(made, made.error().message());
        recorded = std::move(made).value();
    }

    buffer<float> x, y, z;
    graph recorded;
};

std::vector<float> times(float factor, std::vector<float> v)
{
    for (float& e : v)
        e *= factor;
    return v;
}

TEST_SUITE_BEGIN("graph runs");

TEST_CASE("recording computes nothing, and each run computes once")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const sum_graph g(f);
        CHECK(g.recorded.get_device() == f.gpu);
        CHECK(f.download(g.y) == std::vector<float>(count));
        for (int i = 1; i <= 3; ++i) {
            REQUIRE(await(f.io, f.gpu.async_exec(g.recorded)));
            CHECK(f.download(g.z) == times(static_cast<float>(i), numbers(count)));
        }
    }
}

TEST_CASE("runs, writes and reads on the same buffers happen in the order in which they were started")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const sum_graph g(f);
        constexpr int rounds = 40;
        std::vector<std::vector<float>> in(rounds, std::vector<float>(count));
        std::vector<std::vector<float>> out(rounds, std::vector<float>(count));
        int ended = 0;
        const auto note = [&](error_code ec) {
            CHECK_MESSAGE(!ec, ec.message());
            ++ended;
        };
        for (int i = 0; i < rounds; ++i) {
            in[i] = times(static_cast<float>(i), numbers(count));
            f.gpu.async_write(g.y, in[i], note);
            f.gpu.async_exec(g.recorded, note);
            f.gpu.async_exec(g.recorded, note);
            f.gpu.async_read(g.z, out[i], note);
        }
        test::run_until(f.io, [&] { return ended == 4 * rounds; });
        for (int i = 0; i < rounds; ++i)
            CHECK((out[i] == times(static_cast<float>(i + 2), numbers(count))));
    }
}

TEST_CASE("many runs of one graph can be on the way")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const sum_graph g(f);
        constexpr int runs = 300;
        int ended = 0;
        for (int i = 0; i < runs; ++i)
            f.gpu.async_exec(g.recorded, [&](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
        CHECK(f.download(g.z) == times(runs, numbers(count)));
        test::run_until(f.io, [&] { return ended == runs; });
    }
}

TEST_CASE("graphs that share buffers are ordered, and use only the parts that their refs name")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const auto all = f.upload(std::vector<float>(100));
        // Each fills its part, and the later ones also change the neighbour before it.
        std::vector<graph> parts;
        for (std::size_t i = 0; i < 10; ++i) {
            op_list ops;
            ops.add(memory::fill<float>{all.subspan(10 * i, 10), static_cast<float>(i + 1)});
            if (i > 0)
                ops.add(blas::axpy<float>{
                    .x = all.subspan(10 * i, 5), .y = all.subspan(10 * i - 5, 5), .n = 5, .alpha = 1});
            parts.push_back(record(f, std::move(ops)));
        }
        CHECK(f.download(all) == std::vector<float>(100));
        for (const graph& g : parts)
            f.gpu.async_exec(g, [](error_code ec) { CHECK_FALSE(ec); });
        std::vector<float> wanted(100);
        for (std::size_t i = 0; i < 100; ++i)
            wanted[i] = static_cast<float>(i / 10 + 1) + (i % 10 >= 5 && i < 90 ? static_cast<float>(i / 10 + 2) : 0);
        CHECK(f.download(all) == wanted);
    }
}

TEST_CASE("a graph keeps the memory of its buffers")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        auto y = f.upload(std::vector<float>(count));
        graph g;
        {
            const auto x = f.upload(numbers(count));
            g = record(f, op_list().add(blas::axpy<float>{.x = x, .y = y, .n = count, .alpha = 2}));
        }
        // Would reuse the memory of x.
        const auto other = f.upload(std::vector<float>(count, -1));
        REQUIRE(await(f.io, f.gpu.async_exec(g)));
        CHECK(f.download(y) == times(2, numbers(count)));
    }
}

TEST_CASE("ops that no graph can contain are run all the same")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const auto x = f.alloc<float>(count);
        const auto y = f.alloc<float>(count);
        const auto random = rand::make_generator({.seed = 5});
        const graph g =
            record(f, op_list().add(rand::uniform<float>{.dst = x, .from = random}).add(memory::copy<float>{x, y}));
        std::vector<std::vector<float>> drawn(5, std::vector<float>(count));
        int ended = 0;
        for (auto& to : drawn) {
            f.gpu.async_exec(g, [&](error_code ec) { CHECK_MESSAGE(!ec, ec.message()); });
            f.gpu.async_read(y, to, [&](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
        }
        test::run_until(f.io, [&] { return ended == 5; });
        for (std::size_t i = 1; i < drawn.size(); ++i)
            CHECK(drawn[i] != drawn[i - 1]);
        // The graph has its own copy of the generator, which begins where the generator began.
        REQUIRE(f.exec(rand::uniform<float>{.dst = x, .from = random}));
        CHECK(f.download(x) == drawn[0]);
    }
}

TEST_CASE("a stored reply is part of a graph")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const auto x = f.upload(std::vector<float>{1, 2, 3});
        const auto sum = f.alloc<float>(1);
        const graph g = record(f, op_list().add(store_reply(blas::asum<float>{x, 3}, sum)));
        REQUIRE(await(f.io, f.gpu.async_exec(g)));
        CHECK(f.download(sum) == std::vector<float>{6});
        REQUIRE(await(f.io, f.gpu.async_write(x, std::vector<float>{4, 5, 6})));
        REQUIRE(await(f.io, f.gpu.async_exec(g)));
        CHECK(f.download(sum) == std::vector<float>{15});
    }
}

TEST_CASE("after its context was replaced a graph is stale")
{
    for (const auto& options : test::devices_under_test()) {
        // A GPU in this process shares its context, which can be replaced too.
        test::device_fixture f(options);
        const sum_graph g(f);
        REQUIRE(await(f.io, f.gpu.async_replace()));
        const auto refused = await(f.io, f.gpu.async_exec(g.recorded));
        CHECK(refused.error() == errc::stale_ref);
        CHECK(refused.error().message() == "graph 1: the context of its buffers is gone");
        CHECK(await(f.io, g.recorded.async_release()));
        const auto again = await(f.io, f.gpu.async_record(seq(memory::fill<float>{g.y, 1})));
        CHECK(again.error() == errc::stale_ref);
        const sum_graph other(f);
        REQUIRE(await(f.io, f.gpu.async_exec(other.recorded)));
        CHECK(f.download(other.z) == numbers(count));
    }
}

TEST_CASE("refs that do not fit are refused when they are recorded")
{
    for (const auto& options : test::devices_under_test()) {
        test::device_fixture f(options);
        const auto message = [&](const op_list& ops) {
            const auto r = await(f.io, f.gpu.async_record(ops));
            return r ? std::string("no error") : r.error().message();
        };
        auto x = f.alloc<float>(4);
        any_ref longer = x.ref().raw();
        longer.size = 5;
        any_ref other = x.ref().raw();
        other.device += 1000;
        CHECK(message(op_list()) == "graph 1: it has no ops");
        CHECK(message(op_list().add(memory::fill<float>{ref<float>::from_raw(longer), 1})) ==
              "graph 2: dst of op 1 (memory.fill<f32>) names 5 elements from 0 on, its buffer has 4");
        CHECK(message(op_list().add(memory::fill<float>{ref<float>::from_raw(other), 1})) ==
              "graph 3: dst of op 1 (memory.fill<f32>) belongs to another device");
        const auto gone = x.ref();
        x.reset();
        CHECK(message(op_list().add(memory::fill<float>{gone, 1})) ==
              "graph 4: the buffer of dst of op 1 (memory.fill<f32>) has been released");
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_ops_graph_runs
