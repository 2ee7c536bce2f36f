#include "serve/rate_buckets.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace test_serve_rate_buckets {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using options = serve::rate_limiter_options;
using time_point = rate_buckets::time_point;

struct fixture {
    explicit fixture(const serve::rate_limit& all, std::uint64_t max_tenants = 100)
        : buckets({.name = "limiter", .others = all, .max_tenants = max_tenants})
    {
        REQUIRE_FALSE(buckets.options().check());
    }
    ~fixture()
    {
        while (buckets.pop()) {
        }
    }

    serve::rate_decision decide(std::uint64_t tokens = 1, const std::string& tenant = "a")
    {
        return buckets.decide(tenant, tokens, now).value();
    }
    bool allowed(std::uint64_t tokens = 1, const std::string& tenant = "a") { return decide(tokens, tenant).allowed; }

    rate_waiter& wait(std::uint64_t tokens = 1, const std::string& tenant = "a")
    {
        auto& w = waiters.emplace_back(tokens);
        REQUIRE_FALSE(buckets.offer(w, tenant, time_point::max(), now));
        return w;
    }
    error_code error_of_wait(std::uint64_t tokens, time_point deadline = time_point::max())
    {
        auto& w = waiters.emplace_back(tokens);
        return buckets.offer(w, "a", deadline, now);
    }

    std::deque<rate_waiter> waiters;
    rate_buckets buckets;
    time_point now{std::chrono::hours(100)};
};

TEST_SUITE("rate_buckets")
{
    TEST_CASE("a bucket gives its burst at once, and then its rate")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 3});
        for (int i = 0; i < 3; ++i)
            CHECK(f.allowed());
        auto d = f.decide();
        CHECK_FALSE(d);
        CHECK(d.retry_after == 100ms);
        CHECK(d.retry_after_seconds() == 1);
        f.now += 100ms - 1ns;
        CHECK(f.decide().retry_after == 1ns);
        f.now += 1ns;
        CHECK(f.allowed());
        CHECK_FALSE(f.allowed());
        f.now += 250ms;
        CHECK(f.decide(3).retry_after == 50ms);
        CHECK(f.allowed(2));
        CHECK(f.decide(1).retry_after == 50ms);
        CHECK(f.buckets.all().allowed == 5);
        CHECK(f.buckets.all().refused == 5);
    }

    TEST_CASE("who tries again after the time that it was told succeeds")
    {
        std::mt19937_64 random(1);
        for (int round = 0; round < 300; ++round) {
            fixture f({.rate = 1 + random() % 1000,
                       .period = nanoseconds(1 + random() % 1'000'000'000),
                       .burst = 1 + random() % 50});
            const auto burst = f.buckets.options().others.burst;
            for (int i = 0; i < 50; ++i) {
                const std::uint64_t n = 1 + random() % burst;
                const auto d = f.decide(n);
                if (d)
                    continue;
                REQUIRE(d.retry_after > 0ns);
                f.now += d.retry_after - 1ns;
                CHECK_FALSE(f.allowed(n));
                f.now += 1ns;
                CHECK(f.allowed(n));
            }
        }
    }

    TEST_CASE("nothing drifts: a rate that is no whole number of nanoseconds is kept")
    {
        // A third of a second for each token, tried at the first possible time. With a bucket of one token, the
        // fraction of a nanosecond until then would overflow it.
        fixture f({.rate = 3, .period = 1s, .burst = 2});
        const auto begin = f.now;
        REQUIRE(f.allowed(2));
        bool all = true;
        for (int i = 1; i <= 300'000; ++i) {
            f.now += f.decide().retry_after;
            all = all && f.allowed();
        }
        CHECK(all);
        CHECK(f.now - begin == 100'000s);
        // Far in the future the numbers are still exact.
        f.now += std::chrono::hours(24 * 365 * 100);
        REQUIRE(f.allowed(2));
        CHECK(f.decide().retry_after == 333'333'334ns);
    }

    TEST_CASE("the largest rates, bursts and periods do not overflow")
    {
        fixture f({.rate = 1'000'000'000'000, .period = 24h, .burst = 1'000'000'000'000});
        f.now = time_point::max() - std::chrono::hours(24);
        CHECK(f.allowed(1'000'000'000'000));
        CHECK(f.decide(1).retry_after == 87ns); // 86.4
        CHECK(f.decide(1'000'000'000'000).retry_after == 24h);
        fixture slow({.rate = 1, .period = 24h, .burst = 1'000'000'000'000});
        CHECK(slow.allowed(1'000'000'000'000));
        // 10^12 days are more than the clock has.
        CHECK(slow.decide(1'000'000'000'000).retry_after == nanoseconds::max());
    }

    TEST_CASE("a clock that jumps ahead fills buckets, one that jumps back empties them at most")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 5});
        REQUIRE(f.allowed(5));
        f.now += std::chrono::hours(10000);
        CHECK(f.allowed(5));
        CHECK_FALSE(f.allowed());
        f.now -= std::chrono::hours(10000);
        // No tokens for it, and no wait for hours either.
        CHECK_FALSE(f.allowed());
        CHECK(f.decide().retry_after == 100ms);
        CHECK(f.decide(5).retry_after == 500ms);
        // To and fro gives nothing beyond a full bucket.
        int given = 0;
        for (int i = 0; i < 100; ++i) {
            f.now -= 1s;
            given += f.allowed();
            f.now += 1s;
            given += f.allowed();
        }
        CHECK(given <= 5 * 100);
        // A full bucket becomes empty, too.
        f.now += 10s;
        REQUIRE(f.allowed());
        f.now -= std::chrono::hours(1);
        CHECK(f.decide(5).retry_after <= 500ms);
    }

    TEST_CASE("waiting requests get tokens in their order, and none overtakes another")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 5});
        CHECK(f.buckets.wake_at() == time_point::max());
        REQUIRE(f.allowed(5));
        auto& first = f.wait(3);
        auto& second = f.wait(1);
        CHECK(f.buckets.next(f.now) == nullptr);
        CHECK(f.buckets.wake_at() == f.now + 300ms);
        f.now += 200ms;
        // Two tokens are there, but one who takes them would delay the first.
        CHECK(f.decide().retry_after == 300ms);
        f.now += 100ms;
        CHECK(f.buckets.next(f.now) == &first);
        CHECK(f.buckets.next(f.now) == nullptr);
        CHECK(f.buckets.wake_at() == f.now + 100ms);
        // Woken late: nothing is lost.
        auto& third = f.wait(1);
        f.now += 250ms;
        CHECK(f.buckets.next(f.now) == &second);
        CHECK(f.buckets.next(f.now) == &third);
        CHECK(f.decide().retry_after == 50ms);
        // At once if they are there.
        f.now += 1s;
        auto& fourth = f.wait(5);
        CHECK(f.buckets.next(f.now) == &fourth);
        CHECK(f.buckets.all().waiting == 0);
    }

    TEST_CASE("those behind a cancelled one move up")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 5});
        REQUIRE(f.allowed(5));
        auto& first = f.wait(5);
        auto& second = f.wait(1);
        f.now += 100ms;
        f.buckets.remove(first, f.now);
        CHECK(f.buckets.next(f.now) == &second);
        CHECK(f.buckets.all().cancelled == 1);
        CHECK(f.buckets.wake_at() == time_point::max());
    }

    TEST_CASE("bad input, late deadlines and full queues are refused")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 5, .max_waiting = 2});
        CHECK(f.buckets.decide("a", 0, f.now).error().message() == "limiter: tenant a: tokens is 0");
        CHECK(f.buckets.decide("a", 6, f.now).error() == errc::invalid_argument);
        CHECK(f.error_of_wait(6).message() == "limiter: tenant a: tokens is 6; its bucket has at most 5");
        CHECK(f.error_of_wait(1, f.now) == errc::deadline_exceeded);
        REQUIRE(f.allowed(5));
        const auto late = f.error_of_wait(2, f.now + 200ms - 1ns);
        CHECK(late == errc::deadline_exceeded);
        CHECK(late.message() == "limiter: tenant a: the deadline is before the tokens are there, in 200000000 ns");
        CHECK_FALSE(f.error_of_wait(2, f.now + 200ms));
        // Behind that one.
        CHECK(f.error_of_wait(1, f.now + 250ms) == errc::deadline_exceeded);
        CHECK_FALSE(f.error_of_wait(1, f.now + 300ms));
        const auto full = f.error_of_wait(1);
        CHECK(full == errc::queue_full);
        CHECK(full.message() == "limiter: tenant a has max_waiting (2) waiting requests");
        CHECK(f.buckets.all().expired == 3);
        CHECK(f.buckets.all().refused == 1);
    }

    TEST_CASE("without places to wait, requests are allowed only if the tokens are there")
    {
        fixture f({.rate = 1, .period = 1s, .burst = 1, .max_waiting = 0});
        auto& w = f.wait();
        CHECK(f.buckets.next(f.now) == &w);
        CHECK(f.error_of_wait(1) == errc::queue_full);
    }

    TEST_CASE("full buckets are forgotten when others need their places")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 2}, 2);
        CHECK(f.allowed(1, "a"));
        CHECK(f.allowed(2, "b"));
        // Neither has its tokens back: a name that is forgotten too early would have a full bucket at once.
        const auto d = f.decide(1, "c");
        CHECK_FALSE(d);
        CHECK(d.retry_after == 100ms);
        rate_waiter w(1);
        const auto ec = f.buckets.offer(w, "c", time_point::max(), f.now);
        CHECK(ec == errc::queue_full);
        CHECK(ec.message() == "limiter: tenant c is unknown, and the buckets of max_tenants (2) others are not full");
        f.now += 100ms;
        CHECK(f.allowed(1, "c"));
        CHECK(f.buckets.forgotten() == 1);
        CHECK_FALSE(f.allowed(2, "b"));
        // One with waiting requests keeps its place.
        auto& waiting = f.wait(2, "b");
        auto& other = f.wait(2, "c");
        const auto all_wait = f.decide(1, "d");
        CHECK_FALSE(all_wait);
        CHECK(all_wait.retry_after == 1s);
        f.now += 10s;
        auto* first = f.buckets.next(f.now);
        auto* second = f.buckets.next(f.now);
        CHECK(((first == &waiting && second == &other) || (first == &other && second == &waiting)));
    }

    TEST_CASE("in any window, a tenant gets at most its burst and its rate")
    {
        std::mt19937_64 random(9);
        for (int round = 0; round < 50; ++round) {
            const serve::rate_limit limit{.rate = 1 + random() % 100, .period = 10ms, .burst = 1 + random() % 20};
            fixture f(limit);
            std::vector<std::pair<time_point, std::uint64_t>> given;
            for (int i = 0; i < 400; ++i) {
                f.now += nanoseconds(random() % 2'000'000);
                while (auto* w = f.buckets.next(f.now))
                    given.emplace_back(f.now, w->tokens);
                const std::uint64_t n = 1 + random() % limit.burst;
                if (random() % 3 == 0)
                    f.wait(n);
                else if (random() % 5 == 0 && f.buckets.all().waiting > 0 && f.waiters.back().in_queue.is_linked())
                    f.buckets.remove(f.waiters.back(), f.now);
                else if (f.allowed(n))
                    given.emplace_back(f.now, n);
                while (auto* w = f.buckets.next(f.now))
                    given.emplace_back(f.now, w->tokens);
            }
            for (std::size_t i = 0; i < given.size(); ++i) {
                std::uint64_t sum = 0;
                for (std::size_t j = i; j < given.size(); ++j) {
                    sum += given[j].second;
                    const double due = static_cast<double>(limit.burst) +
                                       static_cast<double>(limit.rate) *
                                           std::chrono::duration<double>(given[j].first - given[i].first).count() /
                                           0.01;
                    if (static_cast<double>(sum) > due + 1e-6)
                        FAIL("too many tokens");
                }
            }
            CHECK(given.size() > 5);
        }
    }

    TEST_CASE("the tokens in a bucket")
    {
        fixture f({.rate = 10, .period = 1s, .burst = 5});
        REQUIRE(f.allowed(3));
        f.buckets.for_each([&](const rate_bucket& b) {
            CHECK(rate_buckets::tokens_in(b, f.now) == 2);
            CHECK(rate_buckets::tokens_in(b, f.now + 199ms) == 3);
            CHECK(rate_buckets::tokens_in(b, f.now + 10s) == 5);
        });
    }

    TEST_CASE("100,000 tenants")
    {
        // In linear time this would take hours.
        constexpr int count = 100'000;
        fixture f({.rate = 1, .period = 1s, .burst = 1}, count);
        for (int round = 0; round < 3; ++round) {
            int allowed = 0;
            for (int i = 0; i < count; ++i)
                allowed += f.allowed(1, std::to_string(round * count / 2 + i));
            CHECK(allowed == count);
            f.now += 1s;
        }
        CHECK(f.buckets.forgotten() == count);
    }
}

} // namespace test_serve_rate_buckets
