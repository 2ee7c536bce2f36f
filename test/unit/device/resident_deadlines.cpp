#include "resident_fixture.hpp"

namespace test_device_resident_deadlines {

using namespace test::residents;

TEST_SUITE_BEGIN("resident: deadlines");

TEST_CASE("a deadline during a rebuild ends the wait, not the load")
{
    rebuilding_stage s;
    const counted_loader loader;
    const resident<float> weights(s.gpu, loader);
    answer bounded;
    answer other;
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
        answer late;
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
    answer far;
    answer soon[3];
    answer never;
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

TEST_CASE("cancelling a call keeps the deadlines of the others")
{
    held_stage s;
    asio::cancellation_signal signal;
    answer cancelled;
    answer late;
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
    answer seen;
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

TEST_SUITE_END();

} // namespace test_device_resident_deadlines
