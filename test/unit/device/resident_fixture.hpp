#ifndef COACCEL_TEST_UNIT_DEVICE_RESIDENT_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_RESIDENT_FIXTURE_HPP

#include "support/devices.hpp"
#include "support/tracking.hpp"

#include <coaccel/device/resident.hpp>
#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace test::residents {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using clock = exec_options::clock;

struct stage {
    explicit stage(std::chrono::milliseconds backoff = 1ms) : gpu(test::make_device(io, options(backoff))) {}

    fault_injector injector;
    asio::io_context io;
    device gpu;

    device_options options(std::chrono::milliseconds backoff)
    {
        auto o = test::pool_options();
        o.host.injector = &injector;
        o.restart.initial_backoff = backoff;
        o.restart.max_backoff = backoff;
        return o;
    }

    void lose_context()
    {
        auto x = await(io, gpu.async_alloc<float>(1)).value();
        injector.poison();
        CHECK(is_context_lost(await(io, gpu.async_exec(blas::asum<float>{.x = x, .n = 1})).error()));
    }
};

// A device whose next context is due in an hour.
struct rebuilding_stage : stage {
    rebuilding_stage() : stage(1h)
    {
        lose_context();
        test::run_until(io, [this] { return gpu.status().state == device_state::rebuilding; });
    }
};

// A loader that counts its calls and fails on demand.
struct counted_loader {
    std::shared_ptr<int> calls = std::make_shared<int>(0);
    std::shared_ptr<error_code> fail = std::make_shared<error_code>();

    asio::awaitable<result<buffer<float>>> operator()(device gpu) const { return load(std::move(gpu), calls, fail); }

    static asio::awaitable<result<buffer<float>>> load(device gpu, std::shared_ptr<int> calls,
                                                       std::shared_ptr<error_code> fail)
    {
        ++*calls;
        if (*fail)
            co_return *fail;
        co_return co_await gpu.async_alloc<float>(4, memory_init::zero);
    }
};

// A loader that waits for a timer.
struct held_loader {
    asio::steady_timer* hold;
    std::shared_ptr<int> calls = std::make_shared<int>(0);

    asio::awaitable<result<buffer<float>>> operator()(device gpu) const { return load(std::move(gpu), hold, calls); }

    static asio::awaitable<result<buffer<float>>> load(device gpu, asio::steady_timer* hold, std::shared_ptr<int> calls)
    {
        ++*calls;
        (void)co_await hold->async_wait(as_result(asio::use_awaitable));
        co_return co_await gpu.async_alloc<float>(4, memory_init::zero);
    }
};

// A load that ends when the test says so.
struct held_stage : stage {
    asio::steady_timer hold{io, clock::time_point::max()};
    held_loader loader{&hold};
    resident<float> weights{gpu, loader};

    void release() { hold.expires_at(clock::time_point::min()); }
};

// Counts the calls of a handler and keeps its last arguments.
struct answer {
    error_code ec = errc::no_value;
    ref<float> value;
    int calls = 0;

    auto handler()
    {
        return [this](error_code e, ref<float> r) {
            ec = e;
            value = r;
            ++calls;
        };
    }
};

inline asio::awaitable<result<buffer<float>>> throwing_loader(device)
{
    throw std::runtime_error("the file is gone");
    co_return errc::no_value;
}

inline asio::awaitable<ref<float>> get_throwing(resident<float> weights)
{
    co_return co_await weights.with(within(1h)).async_get(asio::use_awaitable);
}

inline asio::awaitable<result<float>> use(device gpu, resident<float> weights)
{
    BOOST_OUTCOME_CO_TRY(const auto w, co_await weights.async_get());
    co_return co_await gpu.async_exec(blas::asum<float>{.x = w, .n = w.size()});
}

} // namespace test::residents

#endif
