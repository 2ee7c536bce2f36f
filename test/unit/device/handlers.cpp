#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <cstdint>
#include <future>
#include <new>
#include <optional>
#include <vector>

namespace test_device_handlers {

// Kinds of handlers, and operations that are started more than once.

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

TEST_SUITE_BEGIN("device handlers");

/// Allocates a limited number of blocks, then throws.
template <class T>
struct limited_allocator {
    using value_type = T;

    explicit limited_allocator(int& l) noexcept : left(&l) {}
    template <class U>
    limited_allocator(const limited_allocator<U>& other) noexcept : left(other.left)
    {}

    T* allocate(std::size_t n)
    {
        if (*left == 0)
            throw std::bad_alloc();
        --*left;
        return std::allocator<T>().allocate(n);
    }

    // Deallocation does not restore the limit: it counts allocations, not live blocks.
    void deallocate(T* p, std::size_t n) noexcept { std::allocator<T>().deallocate(p, n); }

    friend bool operator==(const limited_allocator& a, const limited_allocator& b) noexcept { return a.left == b.left; }

    int* left;
};

template <class Handler>
auto with_blocks(int& left, Handler handler)
{
    return asio::bind_allocator(limited_allocator<void>(left), std::move(handler));
}

TEST_CASE("an exhausted handler allocator throws to the caller, and no op starts")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        int none = 0;
        bool called = false;
        CHECK_THROWS_AS(
            gpu.async_exec(memory::fill<float>{x, 1.0f}, with_blocks(none, [&](error_code) { called = true; })),
            std::bad_alloc);
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 2.0f})));
        CHECK_FALSE(called);
    }
}

TEST_CASE("completion allocates nothing from the handler's allocator")
{
    constexpr int count = 8;
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        asio::thread_pool elsewhere(1);
        auto strand = asio::make_strand(io);
        auto erased = asio::make_strand(asio::any_io_executor(io.get_executor()));
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        std::vector<int> left(count, 1);
        std::atomic<int> ended = 0;
        const auto note = [&](error_code ec) { ended += !ec; };
        const memory::fill<float> op{x, 1.0f};
        for (std::size_t i = 0; i < count; i += 4) {
            gpu.async_exec(op, with_blocks(left[i], note));
            gpu.async_exec(op, asio::bind_executor(elsewhere, with_blocks(left[i + 1], note)));
            gpu.async_exec(op, asio::bind_executor(strand, with_blocks(left[i + 2], note)));
            gpu.async_exec(op, asio::bind_executor(erased, with_blocks(left[i + 3], note)));
        }
        test::run_until(io, [&] { return ended == count; });
        CHECK(left == std::vector<int>(count, 0));
        elsewhere.join();
    }
}

TEST_CASE("an op holds no work on the device's executor once its handler is called elsewhere")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        asio::thread_pool elsewhere(1);
        auto gpu = make_device(io, o);
        std::promise<void> ran_out;
        std::promise<bool> while_called;
        gpu.async_stats(asio::bind_executor(elsewhere, [&](error_code, const device_stats&) {
            while_called.set_value(ran_out.get_future().wait_for(10s) == std::future_status::ready);
        }));
        gpu = {};
        test::run_out(io);
        ran_out.set_value();
        CHECK(while_called.get_future().get());
        elsewhere.join();
    }
}

TEST_CASE("ops with an exhausted handler allocator complete when their device is abandoned")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    std::vector<int> left(4, 1);
    std::vector<error_code> seen;
    for (int& l : left)
        gpu.async_exec(memory::fill<float>{x, 1.0f}, with_blocks(l, [&](error_code ec) { seen.push_back(ec); }));
    test::run_until(io, [&] { return gate.reached(1); });
    gpu.async_shutdown(shutdown::abandon, asio::detached);
    test::run_until(io, [&] { return gpu.status().state == device_state::stopping; });
    gate.open();
    test::run_until(io, [&] { return seen.size() == left.size(); });
    for (const auto& ec : seen)
        CHECK(ec == errc::device_stopped);
}

struct alignas(64) cache_line {
    std::uint64_t words[8] = {};
};

TEST_CASE("a handler may hold objects of any alignment")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        int aligned = 0;
        for (int i = 0; i < 20; ++i)
            gpu.async_exec(memory::fill<float>{x, 1.0f}, [&aligned, line = cache_line{}](error_code) {
                aligned += reinterpret_cast<std::uintptr_t>(&line) % alignof(cache_line) == 0;
            });
        const auto use = [line = cache_line{}](native_stream, std::span<float> s) {
            s[0] = reinterpret_cast<std::uintptr_t>(&line) % alignof(cache_line) == 0 ? 1.0f : 0.0f;
        };
        CHECK(await(io, gpu.async_submit(inout(x), use)));
        CHECK(await(io, gpu.async_download(x)).value()[0] == 1.0f);
        test::run_until(io, [&] { return aligned == 20; });
    }
}

/// Starts a copy of the operation and waits for its completion.
template <class Operation>
auto run_copy(asio::io_context& io, const Operation& operation)
{
    return await(io, operation);
}

TEST_CASE("a deferred async_create makes a device each time it is started")
{
    asio::io_context io;
    const auto create = device::async_create(io.get_executor(), test::pool_options());
    auto first = run_copy(io, create);
    auto second = run_copy(io, create);
    REQUIRE(first);
    REQUIRE(second);
    CHECK(first.value() != second.value());
    auto x = await(io, first.value().async_alloc<float>(4)).value();
    CHECK(await(io, second.value().async_exec(memory::fill<float>{x, 1.0f})).error() == errc::wrong_device);
    // Both are started at once, through one object.
    int made = 0;
    std::vector<device> devices;
    for (int i = 0; i < 2; ++i)
        create([&](result<device> d) {
            made += d.has_value();
            devices.push_back(d.value());
        });
    test::run_until(io, [&] { return devices.size() == 2; });
    CHECK(made == 2);
    CHECK(devices[0] != devices[1]);
}

TEST_CASE("every deferred operation may be started more than once")
{
    asio::io_context io;
    auto gpu = make_device(io, test::inline_options());
    const std::vector<float> data{1, 2, 3, 4};
    auto x = await(io, gpu.async_upload(data)).value();
    const auto twice = [&](const auto& operation) {
        CHECK(run_copy(io, operation).has_value());
        CHECK(run_copy(io, operation).has_value());
    };
    twice(gpu.async_exec(memory::fill<float>{x, 1.0f}));
    twice(gpu.async_exec(seq(memory::fill<float>{x, 1.0f}, memory::fill<float>{x, 2.0f})));
    twice(gpu.async_submit(inout(x), [](native_stream, std::span<float> s) { s[0] = 1; }));
    twice(gpu.async_alloc<float>(4));
    twice(gpu.async_alloc_managed<float>(4));
    twice(gpu.async_alloc_pinned<float>(4));
    twice(gpu.async_upload(data));
    twice(gpu.async_download(x));
    twice(gpu.async_stats());
    twice(gpu.async_replace());
    auto watch = gpu.watch_generation();
    const auto changed = watch.async_changed();
    for (int i = 0; i < 2; ++i) {
        CHECK(await(io, gpu.async_replace()));
        CHECK(run_copy(io, changed).has_value());
    }
    twice(gpu.async_shutdown());
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_handlers
