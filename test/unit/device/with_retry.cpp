#include "support/devices.hpp"

#include <coaccel/device/with_retry.hpp>
#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <vector>

namespace test_device_with_retry {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using clock = retry_policy::clock;

constexpr retry_policy at_once{.backoff = 0ms};

// Fails with these errors, one per call, then succeeds.
struct script {
    std::vector<error_code> errors;
    int calls = 0;
};

asio::awaitable<result<int>> play(script& s)
{
    const auto call = static_cast<std::size_t>(s.calls++);
    co_return call < s.errors.size() ? result<int>(s.errors[call]) : result<int>(s.calls);
}

bool retry_busy(const error_code& ec) noexcept
{
    return is_busy(ec);
}

TEST_SUITE_BEGIN("with_retry");

TEST_CASE("a job is repeated while its context is lost, as often as the policy allows")
{
    struct row {
        std::vector<error_code> errors;
        int calls;
        error_code end;
    };
    const error_code lost = errc::context_lost;
    const error_code stale = errc::stale_ref;
    const std::vector<row> rows = {
        {{}, 1, {}},
        {{lost}, 2, {}},
        {{lost, stale}, 3, {}},
        {{lost, stale, lost}, 3, lost},
        {{errc::invalid_argument}, 1, errc::invalid_argument},
        {{lost, errc::device_failed}, 2, errc::device_failed},
    };
    for (const row& r : rows) {
        CAPTURE(r.errors.size());
        asio::io_context io;
        script s{r.errors};
        const auto got = test::co_run(io, with_retry(at_once, play, std::ref(s)));
        CHECK(s.calls == r.calls);
        CHECK(got.has_value() == !r.end);
        if (got)
            CHECK(got.value() == r.calls);
        else
            CHECK(got.error() == r.end);
    }
}

TEST_CASE("the policy decides which errors are retried, and is validated")
{
    asio::io_context io;
    auto policy = at_once;
    policy.retryable = &retry_busy;
    script s{{errc::queue_full, errc::context_lost}};
    CHECK(test::co_run(io, with_retry(policy, play, std::ref(s))).error() == errc::context_lost);
    CHECK(s.calls == 2);
    script unused;
    CHECK(test::co_run(io, with_retry({.attempts = 0}, play, std::ref(unused))).error() == errc::invalid_option);
    CHECK(unused.calls == 0);
}

TEST_CASE("the delay grows up to its limit, and no attempt begins after the deadline")
{
    const clock::time_point now{100s};
    retry_counter growing({.attempts = 5, .backoff = 10ms, .max_backoff = 35ms, .multiplier = 2});
    for (const auto expected : {10ms, 20ms, 35ms, 35ms})
        CHECK(growing.failed(errc::context_lost, now) == expected);
    CHECK_FALSE(growing.failed(errc::context_lost, now));

    retry_counter bounded({.attempts = 5, .backoff = 10ms, .multiplier = 2, .deadline = now + 25ms});
    CHECK(bounded.failed(errc::context_lost, now) == 10ms);
    CHECK_FALSE(bounded.failed(errc::context_lost, now + 10ms));
    retry_counter late({.deadline = now});
    CHECK_FALSE(late.failed(errc::context_lost, now));
}

TEST_CASE("cancellation ends the wait between attempts")
{
    asio::io_context io;
    script s{{errc::context_lost}};
    asio::cancellation_signal signal;
    std::optional<error_code> end;
    asio::co_spawn(io, with_retry({.backoff = 1h, .max_backoff = 1h}, play, std::ref(s)),
                   asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr thrown, result<int> r) {
                       CHECK_FALSE(thrown);
                       end = r.error();
                   }));
    test::run_until(io, [&] { return s.calls == 1; });
    io.poll();
    signal.emit(asio::cancellation_type::terminal);
    test::run_until(io, [&] { return end.has_value(); });
    CHECK(*end == asio::error::operation_aborted);
    CHECK(s.calls == 1);
}

asio::awaitable<result<void>> throwing_job(int& calls)
{
    ++calls;
    throw std::runtime_error("no use");
    co_return success();
}

TEST_CASE("an exception of the function is passed on")
{
    asio::io_context io;
    int calls = 0;
    std::exception_ptr caught;
    asio::co_spawn(io, with_retry(at_once, throwing_job, std::ref(calls)),
                   [&](std::exception_ptr thrown, result<void>) { caught = thrown; });
    io.run();
    REQUIRE(caught);
    CHECK_THROWS_AS(std::rethrow_exception(caught), std::runtime_error);
    CHECK(calls == 1);
}

asio::awaitable<result<float>> sum(device gpu, const std::vector<float>& numbers)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
    co_return co_await gpu.async_exec(blas::asum<float>{.x = x, .n = x.size()});
}

TEST_CASE("a job on a device survives its context")
{
    fault_injector injector;
    asio::io_context io;
    auto options = test::pool_options();
    options.host.injector = &injector;
    auto gpu = test::make_device(io, options);
    const std::vector<float> numbers{1, 2, 3, 4};
    injector.poison();
    const auto got = test::co_run(io, with_retry({}, sum, gpu, std::cref(numbers)));
    REQUIRE(got);
    CHECK(got.value() == 10);
    CHECK(gpu.status().generation == 2);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_with_retry
