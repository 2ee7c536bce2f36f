#include "support/device_fixture.hpp"
#include "support/example_plans.hpp"
#include "support/numbers.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace test_device_plan_progress {

namespace {

using namespace coaccel;
using test::await;
using test::numbers;

static_assert(std::is_trivially_copyable_v<plan_options>);

struct fixture : test::device_fixture {
    explicit fixture(const device_options& o = test::pool_options()) : device_fixture(o) {}

    std::uint64_t live() { return await(io, gpu.async_stats()).value().live_buffers; }
    std::uint64_t used() { return await(io, gpu.async_stats()).value().memory.used; }
};

/// Returns the last element of a large constant.
plan_description large_plan(const std::shared_ptr<std::vector<float>>& weights)
{
    plan_builder b("large");
    const auto w = b.constant<float>(std::span<const float>(*weights), weights);
    const auto y = b.output<float>(1);
    b.add(memory::copy<float>{w.subspan(weights->size() - 1, 1), y});
    return b.finish().value();
}

/// More than three of the pieces in which constants are uploaded.
constexpr std::size_t large = std::size_t(25) << 20;

} // namespace

TEST_SUITE_BEGIN("load_progress");

TEST_CASE_FIXTURE(fixture, "a complete load has uploaded all constants and made the first instances")
{
    load_progress progress;
    CHECK(progress.total_bytes() == 0);
    CHECK(progress.total_instances() == 0);
    auto p = await(io, gpu.async_load(test::axpy_plan(100), {.instances = 4, .initial = 3, .progress = &progress}));
    REQUIRE(p);
    CHECK(progress.bytes() == 400);
    CHECK(progress.total_bytes() == 400);
    CHECK(progress.instances() == 3);
    CHECK(progress.total_instances() == 3);
}

TEST_CASE_FIXTURE(fixture, "a load that has been answered is not reported any more")
{
    load_progress progress;
    auto p = await(io, gpu.async_load(test::axpy_plan(), {.instances = 4, .progress = &progress}));
    REQUIRE(p);
    const auto x = numbers(test::plan_elements);
    std::vector<std::vector<float>> y(8, std::vector<float>(x.size()));
    int ended = 0;
    for (auto& out : y)
        p.value().async_run(from(x), to(out), [&](error_code ec) { ended += ec ? 100 : 1; });
    test::run_until(io, [&] { return ended >= 8; });
    CHECK(ended == 8);
    CHECK(await(io, gpu.async_stats()).value().plan_instances == 4);
    CHECK(progress.instances() == 1);
}

TEST_CASE_FIXTURE(fixture, "constants that another plan has uploaded count as uploaded")
{
    const auto first = await(io, gpu.async_load(test::axpy_plan(100)));
    REQUIRE(first);
    load_progress progress;
    const auto second = await(io, gpu.async_load(test::axpy_plan(100), {.progress = &progress}));
    REQUIRE(second);
    CHECK(progress.bytes() == 400);
}

TEST_CASE_FIXTURE(fixture, "a large constant is uploaded in pieces, and arrives complete")
{
    const auto weights = std::make_shared<std::vector<float>>(large, 1.0F);
    weights->back() = 7;
    load_progress progress;
    std::optional<result<plan>> made;
    gpu.async_load(large_plan(weights), {.progress = &progress},
                   [&](error_code ec, plan p) { made = ec ? result<plan>(ec) : result<plan>(std::move(p)); });
    std::vector<std::uint64_t> seen;
    test::run_until(io, [&] {
        if (const auto now = progress.bytes(); seen.empty() || seen.back() != now)
            seen.push_back(now);
        return made.has_value();
    });
    REQUIRE(*made);
    CHECK(seen.size() > 3);
    CHECK(std::ranges::is_sorted(seen));
    CHECK(seen.back() == large * sizeof(float));
    float y = 0;
    REQUIRE(await(io, made->value().async_run(to(std::span(&y, 1)))));
    CHECK(y == 7);
}

TEST_CASE_FIXTURE(fixture, "the load of a large constant can be cancelled half-way, and leaves nothing")
{
    const auto weights = std::make_shared<std::vector<float>>(large, 1.0F);
    const auto before = used();
    const auto buffers = live();
    auto progress = std::make_unique<load_progress>();
    asio::cancellation_signal stop;
    std::optional<error_code> ended;
    gpu.async_load(large_plan(weights), {.progress = progress.get()},
                   asio::bind_cancellation_slot(stop.slot(), [&](error_code ec, const plan&) { ended = ec; }));
    test::run_until(io, [&] { return progress->bytes() > 0; });
    REQUIRE(progress->bytes() < progress->total_bytes());
    stop.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK(*ended == asio::error::operation_aborted);
    CHECK(progress->bytes() < progress->total_bytes());
    // The device does not use it any more, while it ends the load.
    progress.reset();
    test::run_until(io, [&] { return live() == buffers; });
    CHECK(used() == before);
    // The description and the device let go of the weights.
    test::run_until(io, [&] { return weights.use_count() == 1; });
}

TEST_CASE("a refused load reports nothing")
{
    fixture f;
    load_progress progress;
    const auto refused = await(f.io, f.gpu.async_load(test::axpy_plan(), {.instances = 0, .progress = &progress}));
    CHECK(refused.error() == errc::invalid_option);
    CHECK(progress.total_bytes() == 0);
}

TEST_SUITE_END();

} // namespace test_device_plan_progress
