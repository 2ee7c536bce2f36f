#include "resident_fixture.hpp"

namespace test_device_resident {

using namespace test::residents;

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

TEST_CASE("large elements on a device in this process belong to their generation")
{
    stage s;
    const std::vector<float> elements(detail::least_shared_bytes / sizeof(float), 2.0f);
    const resident<float> weights(s.gpu, elements);
    const auto first = await(s.io, weights.async_get()).value();
    CHECK(first.raw().generation == 1);
    CHECK(await(s.io, s.gpu.async_stats()).value().memory.shared == 0);
    s.lose_context();
    const auto second = await(s.io, weights.async_get()).value();
    CHECK(second.raw().generation == 2);
    CHECK(await(s.io, s.gpu.async_download(second)).value() == elements);
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

TEST_CASE("the first of cancellation and timer expiry determines the error")
{
    held_stage s;
    asio::cancellation_signal signal;
    answer seen;
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

} // namespace test_device_resident
