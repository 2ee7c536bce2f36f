#include "inventory.hpp"
#include "isolated.hpp"
#include "ready_workers.hpp"
#include "shared_mappings.hpp"

#include <coaccel/device/resident.hpp>
#include <coaccel/host/fault_injector.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <optional>

namespace test_integration_residents {

// Residents whose elements exist once, however many workers use them.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::held;
using test::mappings;

constexpr std::size_t mib = std::size_t(1) << 20;
/// Of floats: more than the staging area, so that it is filled in pieces.
constexpr std::size_t large = 40 * mib / sizeof(float);
constexpr std::size_t least = 2 * mib / sizeof(float);

device_options options(int standby = 0, fault_injector* faults = nullptr)
{
    auto o = test::isolated_options();
    o.standby = standby;
    o.restart.initial_backoff = o.restart.max_backoff = 1ms;
    o.host.injector = faults;
    return o;
}

std::vector<float> elements(std::size_t count)
{
    std::vector<float> all(count);
    std::iota(all.begin(), all.end(), 1.0f);
    return all;
}

struct fixture : test::isolated_fixture {
    explicit fixture(const device_options& o = options()) : isolated_fixture(o) {}

    ref<float> get(const resident<float>& r)
    {
        const auto got = await(io, r.async_get());
        REQUIRE_MESSAGE(got, got.error().message());
        return got.value();
    }

    /// Whether the worker has the elements.
    bool has(const ref<float>& r, std::size_t count)
    {
        const auto first = download(r.subspan(0, 4)), last = download(r.subspan(count - 4, 4));
        const float end = static_cast<float>(count);
        return first == std::vector<float>{1, 2, 3, 4} && last == std::vector<float>{end - 3, end - 2, end - 1, end};
    }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    void lose()
    {
        const generation next = gpu.status().generation + 1;
        send(SIGKILL);
        wait_for_generation(next);
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated residents");

TEST_CASE("large elements are uploaded once, and later workers map them read-only")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        fixture f(options(standby));
        const resident<float> r(f.gpu, elements(large));
        const auto x = f.get(r);
        CHECK(f.has(x, large));
        const auto first = mappings::of(f.process());
        CHECK(first.writable == 0);
        CHECK(first.inodes.size() == 1);
        CHECK(mappings::of(::getpid()).inodes.empty());
        for (int i = 0; i < 5; ++i) {
            f.lose();
            // The ref does not end with its generation, and needs no async_get.
            CHECK(f.has(x, large));
            CHECK(f.get(r) == x);
            const auto next = mappings::of(f.process());
            CHECK(next.inodes == first.inodes);
            CHECK(next.read_only == 1);
            CHECK(next.writable == 0);
            CHECK(held() == 1);
            CHECK(f.stats().memory.shared == large * sizeof(float));
            CHECK(f.stats().live_buffers == 1);
        }
    }
}

TEST_CASE("small elements are uploaded to each worker")
{
    for (const std::size_t count : {std::size_t(4), least - 1}) {
        fixture f;
        const resident<float> r(f.gpu, elements(count));
        const auto x = f.get(r);
        CHECK(f.has(x, count));
        CHECK(held() == 0);
        CHECK(f.stats().memory.shared == 0);
        f.lose();
        CHECK(f.run(memory::fill<float>{f.alloc<float>(1), 0.0f}) == error_code());
        CHECK(f.run(memory::copy<float>{x.subspan(0, 1), f.alloc<float>(1)}) == errc::stale_ref);
        CHECK(f.has(f.get(r), count));
    }
    fixture f;
    const resident<float> r(f.gpu, elements(least));
    CHECK(f.has(f.get(r), least));
    CHECK(held() == 1);
}

TEST_CASE("elements that a loader makes belong to their generation")
{
    fixture f;
    const resident<float> r(f.gpu, [](device gpu) -> asio::awaitable<result<buffer<float>>> {
        const auto all = elements(least);
        auto uploaded = co_await gpu.async_upload(all);
        co_return uploaded;
    });
    const auto x = f.get(r);
    CHECK(held() == 0);
    // They can be written.
    CHECK_FALSE(f.run(memory::fill<float>{x, 1.0f}));
    f.lose();
    CHECK(f.has(f.get(r), least));
}

TEST_CASE("a fault leaves the elements as they are")
{
    fault_injector faults;
    fixture f(options(1, &faults));
    const resident<float> r(f.gpu, elements(least));
    const auto x = f.get(r);
    for (int i = 0; i < 3; ++i) {
        const generation next = f.gpu.status().generation + 1;
        faults.poison();
        CHECK(f.run(memory::fill<float>{f.alloc<float>(1), 0.0f}) == errc::context_lost);
        f.wait_for_generation(next);
        CHECK(f.stats().suspect_buffers == 0);
        CHECK(f.has(x, least));
    }
}

TEST_CASE("an op that would write shared elements is refused, and changes nothing")
{
    fixture f;
    const resident<float> r(f.gpu, elements(least));
    const auto x = f.get(r);
    const auto refused = f.run(memory::fill<float>{x, 0.0f});
    CHECK(refused == errc::invalid_argument);
    CHECK(refused.message() ==
          "memory.fill: dst can only be read: it has the elements of a resident, which all workers share");
    CHECK(await(f.io, f.gpu.async_write(x.subspan(0, 1), std::vector<float>{5})).error() == errc::invalid_argument);
    CHECK(await(f.io, f.gpu.async_record(seq(memory::fill<float>{x, 0.0f}))).error() == errc::invalid_argument);
    CHECK(f.has(x, least));
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("ops on shared elements wait while the device rebuilds, and async_get does not")
{
    auto o = options();
    o.restart.initial_backoff = o.restart.max_backoff = 200ms;
    fixture f(o);
    const resident<float> r(f.gpu, elements(least));
    const auto x = f.get(r);
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::rebuilding; });
    CHECK(f.get(r) == x);
    CHECK(f.gpu.status().state == device_state::rebuilding);
    CHECK(f.has(x, least));
    CHECK(f.gpu.status().generation == 2);
}

TEST_CASE("copies of a resident share the memory, which is freed with the last one")
{
    {
        const fixture once;
    }
    const auto before = test::inventory::take();
    {
        fixture f(options(1));
        std::optional<resident<float>> a(std::in_place, f.gpu, elements(least));
        auto b = a;
        const auto x = f.get(*a);
        CHECK(f.get(*b) == x);
        CHECK(held() == 1);
        a.reset();
        CHECK(f.has(x, least));
        b.reset();
        test::run_until(f.io, [&] { return held() == 0; });
        CHECK(f.stats().memory.shared == 0);
        CHECK(f.run(memory::copy<float>{x, f.alloc<float>(least)}) == errc::released_ref);
    }
    CHECK(test::inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

TEST_CASE("a worker that is killed while it gets the elements costs time only")
{
    fixture f;
    const resident<float> r(f.gpu, elements(large));
    const int worker = f.process();
    REQUIRE(::kill(worker, SIGSTOP) == 0);
    std::optional<error_code> ended;
    ref<float> x;
    r.async_get([&](error_code ec, ref<float> got) {
        ended = ec;
        x = got;
    });
    f.io.restart();
    f.io.poll();
    REQUIRE(::kill(worker, SIGKILL) == 0);
    test::run_until(f.io, [&] { return ended.has_value(); });
    REQUIRE_FALSE(*ended);
    CHECK(f.has(x, large));
    CHECK(held() == 1);
}

TEST_CASE("a device that has failed keeps the elements until it is revived, and one that has stopped has none")
{
    auto o = options();
    o.restart.max_restarts = 0;
    fixture f(o);
    const resident<float> r(f.gpu, elements(least));
    const auto x = f.get(r);
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(await(f.io, r.async_get()).error() == errc::device_failed);
    CHECK(held() == 1);
    REQUIRE(await(f.io, f.gpu.async_revive()));
    CHECK(f.get(r) == x);
    CHECK(f.has(x, least));
    REQUIRE(await(f.io, f.gpu.async_shutdown()));
    CHECK(held() == 0);
    CHECK(await(f.io, r.async_get()).error() == errc::device_stopped);
}

TEST_CASE("a replaced context has the elements too")
{
    fixture f;
    const resident<float> r(f.gpu, elements(least));
    const auto x = f.get(r);
    const auto first = mappings::of(f.process());
    REQUIRE(await(f.io, f.gpu.async_replace()));
    CHECK(f.has(x, least));
    CHECK(mappings::of(f.process()).inodes == first.inodes);
}

TEST_SUITE_END();

} // namespace test_integration_residents
