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

namespace test_device_resident {

namespace {

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
struct outcome {
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

asio::awaitable<result<buffer<float>>> throwing_loader(device)
{
    throw std::runtime_error("the file is gone");
    co_return errc::no_value;
}

TEST_SUITE_BEGIN("resident");

TEST_CASE("the elements are uploaded once per generation")
{
    stage s;
    const std::vector<float> data{1, 2, 3};
    const resident<float> weights(s.gpu, data);
    const auto first = await(s.io, weights.async_get()).value();
    CHECK(await(s.io, s.gpu.async_download(first)).value() == data);
    CHECK(await(s.io, weights.async_get()).value() == first);

    s.lose_context();
    // The test does not wait for the rebuild: the upload waits for the new context.
    const auto second = await(s.io, weights.async_get()).value();
    CHECK(second.raw().generation == first.raw().generation + 1);
    CHECK(await(s.io, s.gpu.async_download(second)).value() == data);

    REQUIRE(await(s.io, s.gpu.async_replace()));
    const auto third = await(s.io, weights.async_get()).value();
    CHECK(third.raw().generation == second.raw().generation + 1);
    CHECK(await(s.io, s.gpu.async_download(third)).value() == data);
    CHECK(await(s.io, s.gpu.async_download(second)).error() == errc::stale_ref);
}

TEST_CASE("concurrent calls and copies share one load")
{
    stage s;
    const counted_loader loader;
    const resident<float> weights(s.gpu, loader);
    const resident<float> copy = weights;
    std::vector<ref<float>> got;
    for (int i = 0; i < 10; ++i)
        (i % 2 ? weights : copy).async_get([&](error_code ec, ref<float> r) {
            CHECK_FALSE(ec);
            got.push_back(r);
        });
    CHECK(got.empty());
    test::run_until(s.io, [&] { return got.size() == 10; });
    CHECK(*loader.calls == 1);
    for (const auto& r : got)
        CHECK(r == got.front());
}

TEST_CASE("an error of the loader reaches all waiting calls, and the next call tries again")
{
    stage s;
    const counted_loader loader;
    *loader.fail = errc::out_of_memory;
    const resident<float> weights(s.gpu, loader);
    int failed = 0;
    for (int i = 0; i < 3; ++i)
        weights.async_get([&](error_code ec, ref<float> r) { failed += ec == errc::out_of_memory && r.empty(); });
    test::run_until(s.io, [&] { return failed == 3; });
    CHECK(*loader.calls == 1);
    *loader.fail = {};
    CHECK(await(s.io, weights.async_get()));
    CHECK(*loader.calls == 2);
}

TEST_CASE("a loader whose context is lost is called as often as the default retry policy allows")
{
    stage s;
    const counted_loader loader;
    *loader.fail = errc::context_lost;
    const resident<float> weights(s.gpu, loader);
    CHECK(await(s.io, weights.async_get()).error() == errc::context_lost);
    CHECK(*loader.calls == retry_policy{}.attempts);
}

TEST_CASE("an exception of a loader becomes an error with its text")
{
    stage s;
    const resident<float> weights(s.gpu, &throwing_loader);
    const auto got = await(s.io, weights.async_get());
    REQUIRE(got.has_error());
    CHECK(got.error() == errc::user_exception);
    CHECK(got.error().message().find("the file is gone") != std::string::npos);
}

TEST_CASE("cancellation ends the wait, not the load")
{
    stage s;
    const counted_loader loader;
    const resident<float> weights(s.gpu, loader);
    asio::cancellation_signal signal;
    error_code cancelled;
    bool other = false;
    weights.async_get(asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, ref<float>) { cancelled = ec; }));
    weights.async_get([&](error_code ec, ref<float>) { other = !ec; });
    signal.emit(asio::cancellation_type::total);
    test::run_until(s.io, [&] { return other; });
    CHECK(cancelled == asio::error::operation_aborted);
    CHECK(*loader.calls == 1);
}

TEST_CASE("a call on a stopped device fails with device_stopped")
{
    stage s;
    const resident<float> weights(s.gpu, std::vector<float>{1});
    CHECK(await(s.io, weights.async_get()));
    CHECK(await(s.io, s.gpu.async_shutdown()));
    CHECK(await(s.io, weights.async_get()).error() == errc::device_stopped);
}

TEST_CASE("destroying the context during a load releases everything")
{
    std::weak_ptr<int> trace;
    {
        stage s;
        counted_loader loader;
        trace = loader.calls;
        const resident<float> weights(s.gpu, loader);
        weights.async_get([](error_code, ref<float>) { FAIL("must not be called"); });
    }
    CHECK(trace.expired());
}

TEST_CASE("a deadline during a rebuild ends the wait, not the load")
{
    rebuilding_stage s;
    const counted_loader loader;
    const resident<float> weights(s.gpu, loader);
    outcome bounded;
    outcome other;
    const auto how = within(20ms);
    weights.with(how).async_get(bounded.handler());
    weights.async_get(other.handler());
    CHECK(bounded.calls == 0);
    test::run_until(s.io, [&] { return bounded.calls > 0; });
    CHECK(clock::now() >= how.deadline);
    CHECK(bounded.ec == errc::deadline_exceeded);
    CHECK(bounded.value.empty());
    CHECK(other.calls == 0);
    CHECK(await(s.io, weights.with(within(1ms)).async_get()).error() == errc::deadline_exceeded);
    CHECK(*loader.calls == 1);

    CHECK(await(s.io, s.gpu.async_shutdown(shutdown::abandon)));
    test::run_out(s.io);
    CHECK(other.ec == errc::device_stopped);
    CHECK(other.calls == 1);
    CHECK(bounded.calls == 1);
}

asio::awaitable<ref<float>> get_throwing(resident<float> weights)
{
    co_return co_await weights.with(within(1h)).async_get(asio::use_awaitable);
}

TEST_CASE("a deadline that is not reached changes nothing and leaves no work")
{
    stage s;
    const std::vector<float> data{1, 2, 3};
    const resident<float> weights(s.gpu, data);
    const auto first = await(s.io, weights.with(within(1h)).async_get()).value();
    CHECK(await(s.io, s.gpu.async_download(first)).value() == data);
    CHECK(test::co_run(s.io, get_throwing(weights)) == first);
    CHECK(await(s.io, weights.with({}).async_get()).value() == first);
    test::run_out(s.io);
}

TEST_CASE("a past deadline starts no load and never completes inline")
{
    stage s;
    const counted_loader loader;
    const resident<float> weights(s.gpu, loader);
    for (const auto when : {clock::time_point::min(), clock::now()}) {
        outcome late;
        weights.with({.deadline = when}).async_get(late.handler());
        CHECK(late.calls == 0);
        test::run_until(s.io, [&] { return late.calls > 0; });
        CHECK(late.ec == errc::deadline_exceeded);
        CHECK(*loader.calls == 0);
    }
    CHECK(await(s.io, weights.async_get()));
    // Also for elements that are loaded, as for an op of an idle device.
    CHECK(await(s.io, weights.with({.deadline = clock::now()}).async_get()).error() == errc::deadline_exceeded);
}

TEST_CASE("each call has its own deadline, and a call without one gets the buffer")
{
    held_stage s;
    outcome far;
    outcome soon[3];
    outcome never;
    // The later calls have the earlier deadlines.
    s.weights.with(within(1h)).async_get(far.handler());
    for (int i = 0; i < 3; ++i) {
        const auto how = within(30ms - i * 10ms);
        s.weights.with(how).async_get([how, set = soon[i].handler()](error_code ec, ref<float> r) {
            CHECK(clock::now() >= how.deadline);
            set(ec, r);
        });
    }
    s.weights.async_get(never.handler());
    test::run_until(s.io, [&] { return soon[0].calls + soon[1].calls + soon[2].calls == 3; });
    CHECK(far.calls + never.calls == 0);
    s.release();
    test::run_out(s.io);
    const auto current = await(s.io, s.weights.async_get()).value();
    for (const auto& o : soon) {
        CHECK(o.ec == errc::deadline_exceeded);
        CHECK(o.calls == 1);
    }
    for (const auto* o : {&far, &never}) {
        CHECK_FALSE(o->ec);
        CHECK(o->value == current);
        CHECK(o->calls == 1);
    }
    CHECK(*s.loader.calls == 1);
}

TEST_CASE("the first of cancellation and timer expiry determines the error")
{
    held_stage s;
    asio::cancellation_signal signal;
    outcome seen;
    // Long enough for a loaded machine to start both calls first.
    const auto how = within(200ms);
    const auto get = [&] {
        s.weights.with(how).async_get(asio::bind_cancellation_slot(signal.slot(), seen.handler()));
    };
    SUBCASE("cancelled before the timer expires")
    {
        get();
        signal.emit(asio::cancellation_type::total);
        CHECK(seen.calls == 0);
        test::run_until(s.io, [&] { return clock::now() > how.deadline; });
        CHECK(seen.ec == operation_aborted);
    }
    SUBCASE("cancelled after the deadline, before the timer is noticed")
    {
        get();
        while (clock::now() <= how.deadline)
            std::this_thread::yield();
        signal.emit(asio::cancellation_type::terminal);
        CHECK(seen.calls == 0);
        test::run_until(s.io, [&] { return seen.calls > 0; });
        CHECK(seen.ec == operation_aborted);
    }
    SUBCASE("cancelled after the timer has expired, before the handler is called")
    {
        // The same expiry ends both waits, and this handler is called first.
        s.weights.with(how).async_get([&](error_code ec, ref<float>) {
            CHECK(ec == errc::deadline_exceeded);
            CHECK(seen.calls == 0);
            signal.emit(asio::cancellation_type::partial);
        });
        get();
        test::run_until(s.io, [&] { return seen.calls > 0; });
        CHECK(seen.ec == errc::deadline_exceeded);
    }
    s.release();
    test::run_out(s.io);
    CHECK(seen.calls == 1);
    CHECK(seen.value.empty());
}

TEST_CASE("cancelling a call keeps the deadlines of the others")
{
    held_stage s;
    asio::cancellation_signal signal;
    outcome cancelled;
    outcome late;
    s.weights.with(within(10ms)).async_get(asio::bind_cancellation_slot(signal.slot(), cancelled.handler()));
    s.weights.with(within(20ms)).async_get(late.handler());
    signal.emit(asio::cancellation_type::total);
    test::run_until(s.io, [&] { return late.calls > 0; });
    CHECK(cancelled.ec == operation_aborted);
    CHECK(late.ec == errc::deadline_exceeded);
}

TEST_CASE("calls whose deadlines pass as the load ends complete once, with several threads")
{
    constexpr std::size_t count = 200;
    held_stage s;
    std::vector<std::atomic<int>> calls(count);
    std::atomic<int> wrong = 0;
    s.hold.expires_after(2ms);
    for (std::size_t i = 0; i < count; ++i)
        s.weights.with(within(std::chrono::microseconds(20 * i))).async_get([&, i](error_code ec, ref<float> r) {
            ++calls[i];
            wrong += ec ? ec != errc::deadline_exceeded || !r.empty() : r.empty();
        });
    s.io.restart();
    std::thread other([&] { s.io.run_for(test::patience); });
    s.io.run_for(test::patience);
    other.join();
    CHECK(s.io.stopped());
    CHECK(wrong == 0);
    for (const auto& c : calls)
        CHECK(c == 1);
    CHECK(*s.loader.calls <= 1);
}

TEST_CASE("options other than the deadline are ignored")
{
    stage s;
    const counted_loader loader;
    const resident<float> weights(s.gpu, loader);
    exec_options how = within(1h);
    how.priority = priority::high;
    how.lane = 99;
    how.when_full = when_full::fail;
    how.retry = retry::idempotent;
    const auto urgent = weights.with(how);
    CHECK(urgent.options().lane == 99);
    CHECK(await(s.io, s.gpu.with({.lane = 99}).async_alloc<float>(1)).error() == errc::invalid_argument);
    CHECK(await(s.io, urgent.async_get()));
}

TEST_CASE("a call with a deadline allocates from its handler's allocator once")
{
    held_stage s;
    test::allocation_count count;
    outcome seen;
    s.weights.with(within(5ms)).async_get(asio::bind_allocator(test::tracking_allocator<void>(count), seen.handler()));
    CHECK(count.live == 1);
    test::run_until(s.io, [&] { return seen.calls > 0; });
    CHECK(seen.ec == errc::deadline_exceeded);
    CHECK(count.allocations == 1);
    CHECK(count.live == 0);
}

TEST_CASE("a call with a deadline is destroyed with its execution context")
{
    auto held = std::make_shared<int>(0);
    const auto handler = [&held] { return [held](error_code, ref<float>) { FAIL("must not be called"); }; };
    std::optional<resident<float>> weights;
    {
        asio::io_context io;
        const auto gpu = test::make_device(io);
        asio::steady_timer hold(io, clock::time_point::max());
        const held_loader loader{&hold};
        weights.emplace(gpu, loader);
        weights->with(within(1h)).async_get(handler());
        weights->async_get(handler());
        test::run_until(io, [&] { return *loader.calls == 1; });
        CHECK(held.use_count() == 3);
    }
    CHECK(held.use_count() == 1);
    weights->with(within(1h)).async_get(handler());
    weights->with({.deadline = clock::time_point::min()}).async_get(handler());
    CHECK(held.use_count() == 1);
}

TEST_CASE("destroying the context during a rebuild releases a call with a deadline")
{
    std::weak_ptr<int> trace;
    {
        rebuilding_stage s;
        counted_loader loader;
        trace = loader.calls;
        const resident<float> weights(s.gpu, loader);
        weights.with(within(1h)).async_get([weights](error_code, ref<float>) { FAIL("must not be called"); });
        test::run_until(s.io, [&] { return *loader.calls == 1; });
    }
    CHECK(trace.expired());
}

asio::awaitable<result<float>> use(device gpu, resident<float> weights)
{
    BOOST_OUTCOME_CO_TRY(const auto w, co_await weights.async_get());
    co_return co_await gpu.async_exec(blas::asum<float>{.x = w, .n = w.size()});
}

TEST_CASE("a retried job sees no stale ref, however often the context is lost")
{
    stage s;
    const resident<float> weights(s.gpu, std::vector<float>{1, 2, 3});
    for (int i = 0; i < 3; ++i) {
        s.injector.poison();
        const auto got = test::co_run(s.io, with_retry({}, use, s.gpu, weights));
        REQUIRE(got);
        CHECK(got.value() == 6);
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_resident
