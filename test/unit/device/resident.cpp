#include "support/devices.hpp"

#include <coaccel/device/resident.hpp>
#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

using namespace coaccel;
using test::await;

struct stage {
    fault_injector injector;
    asio::io_context io;
    device gpu = test::make_device(io, options());

    device_options options()
    {
        auto o = test::pool_options();
        o.host.injector = &injector;
        return o;
    }

    void lose_context()
    {
        auto x = await(io, gpu.async_alloc<float>(1)).value();
        injector.poison();
        CHECK(is_context_lost(await(io, gpu.async_exec(blas::asum<float>{.x = x, .n = 1})).error()));
    }
};

// A loader that counts its calls and fails as it is told.
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
        co_return co_await gpu.async_alloc<float>(4, init::zero);
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
    // No wait for the rebuild: the upload waits for the new context.
    const auto second = await(s.io, weights.async_get()).value();
    CHECK(second.raw().generation == first.raw().generation + 1);
    CHECK(await(s.io, s.gpu.async_download(second)).value() == data);

    REQUIRE(await(s.io, s.gpu.async_replace()));
    const auto third = await(s.io, weights.async_get()).value();
    CHECK(third.raw().generation == second.raw().generation + 1);
    CHECK(await(s.io, s.gpu.async_download(third)).value() == data);
    CHECK(await(s.io, s.gpu.async_download(second)).error() == errc::stale_ref);
}

TEST_CASE("concurrent calls and copies share one loading")
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

TEST_CASE("an error of the loader reaches all who wait, and the next call tries again")
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

TEST_CASE("a loader whose context dies is called again, as often as a job is")
{
    stage s;
    const counted_loader loader;
    *loader.fail = errc::context_lost;
    const resident<float> weights(s.gpu, loader);
    CHECK(await(s.io, weights.async_get()).error() == errc::context_lost);
    CHECK(*loader.calls == retry_policy{}.attempts);
}

TEST_CASE("a loader that throws is an error with its text")
{
    stage s;
    const resident<float> weights(s.gpu, &throwing_loader);
    const auto got = await(s.io, weights.async_get());
    REQUIRE(got.has_error());
    CHECK(got.error() == errc::user_exception);
    CHECK(got.error().message().find("the file is gone") != std::string::npos);
}

TEST_CASE("cancellation ends the wait, not the loading")
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

TEST_CASE("a device that has stopped says so")
{
    stage s;
    const resident<float> weights(s.gpu, std::vector<float>{1});
    CHECK(await(s.io, weights.async_get()));
    CHECK(await(s.io, s.gpu.async_shutdown()));
    CHECK(await(s.io, weights.async_get()).error() == errc::device_stopped);
}

TEST_CASE("a context destroyed with a loading under way releases everything")
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

asio::awaitable<result<float>> use(device gpu, resident<float> weights)
{
    BOOST_OUTCOME_CO_TRY(const auto w, co_await weights.async_get());
    co_return co_await gpu.async_exec(blas::asum<float>{.x = w, .n = w.size()});
}

TEST_CASE("with a retry no stale ref is seen, however often the context dies")
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
