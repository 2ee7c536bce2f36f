#ifndef COACCEL_TEST_INTEGRATION_DURABLE_FIXTURE_HPP
#define COACCEL_TEST_INTEGRATION_DURABLE_FIXTURE_HPP

#include "inventory.hpp"
#include "isolated.hpp"
#include "ready_workers.hpp"
#include "shared_mappings.hpp"
#include "support/forked_child.hpp"
#include "support/sanitized.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <sys/resource.h>

// Buffers that outlive the workers of their device.
namespace test::durable_workers {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::held;
using test::numbers;

inline constexpr std::size_t n = 1000;

inline device_options options(int standby = 0)
{
    auto o = test::isolated_options();
    o.standby = standby;
    o.restart.initial_backoff = o.restart.max_backoff = 1ms;
    return o;
}

struct fixture : test::isolated_fixture {
    explicit fixture(const device_options& o = options()) : isolated_fixture(o) {}

    template <class T>
    durable_buffer<T> durable(std::size_t count)
    {
        auto made = await(io, gpu.async_alloc_durable<T>(count));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    template <class T>
    void write(const durable_buffer<T>& to, const std::vector<T>& data)
    {
        const auto done = await(io, gpu.async_write(to.ref(), data));
        REQUIRE_MESSAGE(done, done.error().message());
    }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    /// Ends the worker from outside, and waits for the next one.
    void lose()
    {
        const generation next = gpu.status().generation + 1;
        send(SIGKILL);
        wait_for_generation(next);
    }

    /// Lets the next op end the context, as a faulting kernel does.
    void fault(fault_injector& faults)
    {
        const generation next = gpu.status().generation + 1;
        faults.poison();
        CHECK(run(memory::fill<float>{alloc<float>(1), 0.0f}) == errc::context_lost);
        wait_for_generation(next);
    }

    /// Starts an op that is on the worker until the worker is killed.
    template <class Op>
    void start_and_kill(const Op& op)
    {
        const generation next = gpu.status().generation + 1;
        const int worker = process();
        REQUIRE(::kill(worker, SIGSTOP) == 0);
        std::optional<error_code> ended;
        gpu.async_exec(op, [&](error_code ec) { ended = ec; });
        test::run_until(io, [&] { return gpu.status().state == device_state::busy || stats().in_flight == 1; });
        REQUIRE(::kill(worker, SIGKILL) == 0);
        test::run_until(io, [&] { return ended.has_value(); });
        CHECK(*ended == errc::context_lost);
        wait_for_generation(next);
    }

    /// Kills the worker and its standbys at once.
    void kill_all()
    {
        const int first = process();
        for (const int other : test::ready_besides(first))
            REQUIRE(::kill(other, SIGKILL) == 0);
        REQUIRE(::kill(first, SIGKILL) == 0);
    }

    error_code read_error(const durable_buffer<float>& b)
    {
        const auto got = await(io, gpu.async_download(b.ref()));
        return got ? error_code() : got.error();
    }
};

} // namespace test::durable_workers

#endif
