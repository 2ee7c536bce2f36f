#include "worker/reply_forecast.hpp"

#include <coaccel/detail/exec_requests.hpp>
#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using clock_type = detail::clock;

struct asked final : detail::exec_request<blas::scal<float>> {
    explicit asked(std::uint64_t n)
        : exec_request(nullptr, {.x = ref<float>::from_raw({1, 1, 1, 1, 0, n, dtype::f32}), .n = n}, {})
    {}
    void post() override {}
    void destroy() noexcept override {}
};

struct fixture {
    /// One request from its sending to its reply.
    void round(asked& r, clock_type::duration taken, bool looking)
    {
        const auto id = send(r);
        now += taken;
        CHECK(forecast.is_about(id));
        forecast.ended(now, looking);
    }

    std::uint64_t send(asked& r)
    {
        r.launched = now;
        forecast.sent(++last, r);
        return last;
    }

    /// How long the next one is expected to take.
    clock_type::duration expected(asked& r)
    {
        send(r);
        const auto next = forecast.next();
        return next.end == clock_type::time_point::max() ? clock_type::duration::zero() : next.end - now;
    }

    worker::reply_forecast forecast;
    std::uint64_t last = 0;
    clock_type::time_point now = clock_type::time_point(1h);
    asked small{10};
    asked large{1000};
};

} // namespace

TEST_SUITE_BEGIN("reply_forecast");

TEST_CASE_FIXTURE(fixture, "of what was never seen nothing is known")
{
    CHECK(forecast.next().end == clock_type::time_point::max());
    CHECK(expected(small) == 0ns);
    round(small, 1ms, true);
    CHECK(forecast.next().end == clock_type::time_point::max());
    CHECK(expected(large) == 0ns);
}

TEST_CASE_FIXTURE(fixture, "what was seen is expected again, and after some times relied on")
{
    for (int i = 0; i < 4; ++i) {
        round(small, 1ms, true);
        round(large, 5ms, true);
        CHECK(expected(small) == 1ms);
        CHECK(forecast.next().length == 1ms);
        CHECK(forecast.next().reliable == (i == 3));
        CHECK(expected(large) == 5ms);
    }
}

TEST_CASE_FIXTURE(fixture, "who came too late looks earlier, until it is there in time")
{
    constexpr auto wake_up = 50us;
    constexpr auto truth = 1ms;
    int late = 0;
    for (; late < 20; ++late) {
        round(small, truth + wake_up, false);
        if (expected(small) <= truth)
            break;
    }
    CHECK(late < 20);
    CHECK(expected(small) > truth / 2);
}

TEST_CASE_FIXTURE(fixture, "who looked too early looks later")
{
    round(small, 1ms, true);
    for (int i = 0; i < 20; ++i) {
        send(small);
        forecast.due();
        now += 3ms;
        forecast.ended(now, false);
    }
    CHECK(expected(small) > 2900us);
    CHECK_FALSE(forecast.next().reliable);
}

TEST_CASE_FIXTURE(fixture, "others that are sent meanwhile change nothing")
{
    round(small, 1ms, true);
    const auto at = now;
    CHECK(expected(small) == 1ms);
    CHECK_FALSE(forecast.is_about(last + 1));
    now += 300us;
    CHECK(forecast.next().end == at + 1ms);
}

TEST_SUITE_END();
