#include "worker/parent/reply_estimator.hpp"

#include <coaccel/device/detail/exec_requests.hpp>
#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

namespace test_worker_reply_estimator {

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
    /// One request, from sending it to its reply.
    void round(asked& r, clock_type::duration taken, bool looking)
    {
        const auto id = send(r);
        now += taken;
        CHECK(expected_end.is_about(id));
        expected_end.ended(now, looking);
    }

    std::uint64_t send(asked& r)
    {
        r.launched = now;
        expected_end.sent(++last, r);
        return last;
    }

    /// The estimated duration of the next request.
    clock_type::duration expected(asked& r)
    {
        send(r);
        const auto next = expected_end.next();
        return next.end == clock_type::time_point::max() ? clock_type::duration::zero() : next.end - now;
    }

    worker::reply_estimator expected_end;
    std::uint64_t last = 0;
    clock_type::time_point now = clock_type::time_point(1h);
    asked small{10};
    asked large{1000};
};

} // namespace

TEST_SUITE_BEGIN("reply_estimator");

TEST_CASE_FIXTURE(fixture, "there is no estimate for an op that was never measured")
{
    CHECK(expected_end.next().end == clock_type::time_point::max());
    CHECK(expected(small) == 0ns);
    round(small, 1ms, true);
    CHECK(expected_end.next().end == clock_type::time_point::max());
    CHECK(expected(large) == 0ns);
}

TEST_CASE_FIXTURE(fixture, "a measured op has an estimate, which becomes reliable after four measurements")
{
    for (int i = 0; i < 4; ++i) {
        round(small, 1ms, true);
        round(large, 5ms, true);
        CHECK(expected(small) == 1ms);
        CHECK(expected_end.next().length == 1ms);
        CHECK(expected_end.next().reliable == (i == 3));
        CHECK(expected(large) == 5ms);
    }
}

TEST_CASE_FIXTURE(fixture, "after a late wake-up the next wait is shorter, until it is in time")
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

TEST_CASE_FIXTURE(fixture, "after an early wake-up the next wait is longer")
{
    round(small, 1ms, true);
    for (int i = 0; i < 20; ++i) {
        send(small);
        expected_end.due();
        now += 3ms;
        expected_end.ended(now, false);
    }
    CHECK(expected(small) > 2900us);
    CHECK_FALSE(expected_end.next().reliable);
}

TEST_CASE_FIXTURE(fixture, "requests sent later do not change the estimate")
{
    round(small, 1ms, true);
    const auto at = now;
    CHECK(expected(small) == 1ms);
    CHECK_FALSE(expected_end.is_about(last + 1));
    now += 300us;
    CHECK(expected_end.next().end == at + 1ms);
}

TEST_SUITE_END();

} // namespace test_worker_reply_estimator
