#include "support/devices.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

namespace test_device_completions {

// Several completions in one turn of a device.

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

TEST_SUITE_BEGIN("device completions");

/// Blocks every thread of a pool, so that requests started meanwhile are handled in one turn.
class occupied {
public:
    occupied(asio::thread_pool& pool, int threads) : latches_(std::make_shared<latches>(threads))
    {
        for (int i = 0; i < threads; ++i)
            asio::post(pool, [held = latches_] {
                held->here.count_down();
                held->go.wait();
            });
        latches_->here.wait();
    }

    void let_go() { latches_->go.count_down(); }

private:
    struct latches {
        explicit latches(int threads) : here(threads) {}

        std::latch here;
        std::latch go{1};
    };

    /// Shared with the threads: one that has been let go may look at its latch once more.
    std::shared_ptr<latches> latches_;
};

/// Counts arrivals, and waits for the last one with a timeout.
class meeting {
public:
    explicit meeting(int expected) : expected_(expected) {}

    bool wait()
    {
        std::unique_lock lock(mutex_);
        ++here_;
        changed_.notify_all();
        return changed_.wait_for(lock, 10s, [this] { return here_ >= expected_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    const int expected_;
    int here_ = 0;
};

struct on_pool {
    explicit on_pool(std::size_t threads) : pool(threads)
    {
        gpu = device::async_create(pool.get_executor(), test::inline_options(), asio::use_future).get();
        x = gpu.async_alloc<float>(4, asio::use_future).get();
    }

    asio::thread_pool pool;
    device gpu;
    buffer<float> x;
};

TEST_CASE("the handlers of one turn run on all threads of a pool")
{
    constexpr int threads = 4;
    on_pool d(threads);
    meeting all(threads);
    std::vector<std::future<bool>> met;
    occupied hold(d.pool, threads);
    for (int i = 0; i < threads; ++i) {
        std::promise<bool> told;
        met.push_back(told.get_future());
        d.gpu.async_exec(memory::fill<float>{d.x, 1.0f},
                         [&all, told = std::move(told)](error_code) mutable { told.set_value(all.wait()); });
    }
    hold.let_go();
    for (auto& m : met)
        CHECK(m.get());
}

TEST_CASE("a handler may wait for an op that completed in the same turn")
{
    on_pool d(2);
    std::promise<std::future_status> told;
    std::future<void> second;
    {
        occupied hold(d.pool, 2);
        d.gpu.async_exec(memory::fill<float>{d.x, 1.0f}, [&](error_code) { told.set_value(second.wait_for(10s)); });
        second = d.gpu.async_exec(memory::fill<float>{d.x, 2.0f}, asio::use_future);
        hold.let_go();
        CHECK(told.get_future().get() == std::future_status::ready);
    }
    second.get();
}

TEST_CASE("a handler that polls sees the next completion")
{
    for (const int hint : {1, 2}) {
        CAPTURE(hint);
        asio::io_context io(hint);
        auto gpu = make_device(io, test::inline_options());
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        int ended = 0;
        int seen_from_within = 0;
        // Started outside the executor, so that one turn handles both.
        gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code) {
            ++ended;
            io.poll_one();
            seen_from_within = ended;
        });
        gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code) { ++ended; });
        test::run_until(io, [&] { return ended == 2; });
        CHECK(seen_from_within == 2);
    }
}

TEST_CASE("an op that another thread starts does not overtake pending completions")
{
    for (const int hint : {1, 2}) {
        CAPTURE(hint);
        asio::io_context io(hint);
        auto gpu = make_device(io, test::inline_options());
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        std::vector<int> order;
        const auto start = [&](int i) {
            gpu.async_exec(memory::fill<float>{x, 1.0f}, [&order, i](error_code) { order.push_back(i); });
        };
        // Started outside the executor, so that one turn handles both.
        gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code) {
            order.push_back(0);
            std::thread(start, 2).join();
        });
        start(1);
        test::run_until(io, [&] { return order.size() == 3; });
        CHECK(order == std::vector{0, 1, 2});
    }
}

TEST_CASE("completions of one turn keep the order of the ops")
{
    constexpr int count = 20;
    std::vector<int> expected(count);
    std::iota(expected.begin(), expected.end(), 0);
    asio::io_context io;
    auto strand = asio::make_strand(io);
    auto gpu = make_device(io, test::inline_options());
    auto on_strand = await(io, device::async_create(strand, test::inline_options())).value();
    for (device* d : {&gpu, &on_strand})
        for (const bool own_executor : {false, true}) {
            auto x = await(io, d->async_alloc<float>(4)).value();
            std::vector<int> seen;
            for (int i = 0; i < count; ++i) {
                const auto note = [&seen, i](error_code) { seen.push_back(i); };
                if (own_executor)
                    d->async_exec(memory::fill<float>{x, 1.0f}, asio::bind_executor(strand, note));
                else
                    d->async_exec(memory::fill<float>{x, 1.0f}, note);
            }
            test::run_until(io, [&] { return seen.size() == count; });
            CHECK(seen == expected);
        }
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_completions
