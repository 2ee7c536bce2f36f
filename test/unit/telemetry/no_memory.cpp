#include "http_client.hpp"
#include "snapshots.hpp"
#include "support/devices.hpp"

#include <coaccel/telemetry/http_endpoint.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

namespace test_telemetry_no_memory {

namespace {

/// How many allocations of this thread succeed before one fails; negative: no limit.
thread_local std::int64_t remaining = -1;
thread_local bool all_fail = false;

bool refuses() noexcept
{
    if (all_fail)
        return true;
    if (remaining < 0)
        return false;
    return remaining-- == 0;
}

} // namespace

} // namespace test_telemetry_no_memory

void* operator new(std::size_t bytes)
{
    void* memory = test_telemetry_no_memory::refuses() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    return test_telemetry_no_memory::refuses() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

// Asio allocates with this function.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept
{
    void* memory = nullptr;
    if (test_telemetry_no_memory::refuses() || ::posix_memalign(&memory, alignment, bytes) != 0)
        return nullptr;
    return memory;
}

namespace test_telemetry_no_memory {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using test::status_of;
using test::value_of;

TEST_SUITE_BEGIN("telemetry without memory");

TEST_CASE("whichever allocation fails, a collection ends or throws, and the next one is complete")
{
    asio::io_context io;
    const registry metrics(io.get_executor(), {.source_timeout = test::patience});
    auto gpu = test::make_device(io, test::inline_options());
    const auto kept = metrics.add(gpu, "gpu").value();
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
        CAPTURE(n);
        bool ended = false, thrown = false;
        const auto end = std::chrono::steady_clock::now() + test::patience;
        // No assertions below the limit: they allocate.
        remaining = n;
        try {
            metrics.async_collect([&](error_code, const snapshot&) { ended = true; });
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        io.restart();
        while (!ended && !thrown && std::chrono::steady_clock::now() < end) {
            try {
                io.run_one_for(std::chrono::milliseconds(1));
            } catch (const std::bad_alloc&) {
                // From the device's own work.
            }
        }
        failed = remaining < 0;
        remaining = -1;
        CHECK((ended || thrown));
        const auto all = test::await(io, metrics.async_collect());
        REQUIRE(all);
        CHECK(value_of(all.value(), "coaccel_device_generation", {{"device", "gpu"}}) == 1);
    }
}

/// Runs handlers; an exception of one of them, which io_context passes on, does not end it.
void run_for(asio::io_context& io, std::chrono::milliseconds time)
{
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        try {
            io.run_one_until(end);
        } catch (const std::bad_alloc&) {
        }
    }
}

TEST_CASE("an endpoint without memory accepts connections again as soon as there is some")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    const auto is_served = [&] {
        const auto asked = test::last_request("GET", "/healthz");
        return status_of(test::co_run(io, test::exchange(endpoint.port(), asked))) == 200;
    };
    CHECK(is_served());
    // Only the listener has work meanwhile: without memory, Asio ends the program when it resumes a coroutine.
    const auto waiting = test::connected(io, endpoint.port());
    all_fail = true;
    run_for(io, std::chrono::milliseconds(400));
    all_fail = false;
    CHECK(is_served());
}

TEST_CASE("the destructor of an endpoint needs no memory")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    std::optional endpoint(http_endpoint::start(io.get_executor(), metrics).value());
    auto silent = test::connected(io, endpoint->port());
    io.poll();
    all_fail = true;
    endpoint.reset();
    all_fail = false;
    CHECK(test::co_run(io, test::read_all(silent)).empty());
    silent.close();
    test::run_out(io);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_no_memory
