#include "serve/rollback_rule.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <limits>
#include <random>
#include <string>
#include <utility>

namespace test_serve_rollback_rule {

using namespace std::chrono_literals;
using coaccel::detail::rollback_rule;
using coaccel::serve::rollback_options;

rollback_rule watching(const rollback_options& o)
{
    rollback_rule r(o);
    r.restart();
    return r;
}

const rollback_rule::time_point start{100s};

TEST_SUITE("rollback_rule")
{
    TEST_CASE("fires when the share is above the limit, and not at it")
    {
        auto r = watching({.max_failure_share = 0.5, .min_requests = 4, .max_requests = 100, .window = 1s});
        CHECK_FALSE(r.add(true, start));
        CHECK_FALSE(r.add(false, start));
        CHECK_FALSE(r.add(true, start));
        CHECK_FALSE(r.add(false, start));
        CHECK(r.add(true, start));
        CHECK(r.requests() == 5);
        CHECK(r.failures() == 3);
    }

    TEST_CASE("does not fire for too few requests")
    {
        auto r = watching({.max_failure_share = 0, .min_requests = 3, .max_requests = 100, .window = 1s});
        CHECK_FALSE(r.add(true, start));
        CHECK_FALSE(r.add(true, start));
        CHECK(r.add(false, start));
    }

    TEST_CASE("outcomes that are too old do not count")
    {
        auto r = watching({.max_failure_share = 0.5, .min_requests = 2, .max_requests = 100, .window = 1s});
        CHECK_FALSE(r.add(true, start));
        CHECK_FALSE(r.add(true, start + 1s));
        CHECK(r.requests() == 1);
        CHECK(r.add(true, start + 2s - 1ns));
        SUBCASE("without a window they always do")
        {
            auto all = watching({.max_failure_share = 0.5, .min_requests = 2, .max_requests = 100, .window = 0s});
            CHECK_FALSE(all.add(true, start));
            CHECK(all.add(true, start + 1000h));
        }
    }

    TEST_CASE("only the latest requests count")
    {
        auto r = watching({.max_failure_share = 0.7, .min_requests = 4, .max_requests = 4, .window = 0s});
        for (int i = 0; i < 100; ++i)
            CHECK_FALSE(r.add(false, start));
        CHECK_FALSE(r.add(true, start));
        CHECK_FALSE(r.add(true, start));
        CHECK(r.add(true, start));
        CHECK(r.requests() == 4);
    }

    TEST_CASE("can be switched off, and begins anew")
    {
        auto off = watching({.max_failure_share = 1, .min_requests = 1, .max_requests = 4, .window = 0s});
        CHECK_FALSE(off.enabled());
        for (int i = 0; i < 10; ++i)
            CHECK_FALSE(off.add(true, start));
        auto r = watching({.max_failure_share = 0.5, .min_requests = 2, .max_requests = 4, .window = 0s});
        CHECK_FALSE(r.add(true, start));
        r.restart();
        CHECK_FALSE(r.add(true, start));
        CHECK(r.add(true, start));
    }

    TEST_CASE("agrees with a list of all outcomes")
    {
        std::minstd_rand random(1);
        for (int round = 0; round < 200; ++round) {
            const rollback_options o{.max_failure_share = static_cast<double>(random() % 10) / 10,
                                     .min_requests = 1 + static_cast<std::uint32_t>(random() % 5),
                                     .max_requests = 5 + static_cast<std::uint32_t>(random() % 20),
                                     .window = std::chrono::milliseconds(random() % 40)};
            auto r = watching(o);
            std::deque<std::pair<rollback_rule::time_point, bool>> all;
            auto now = start;
            const unsigned failing = 1 + random() % 10;
            for (int i = 0; i < 300; ++i) {
                now += std::chrono::milliseconds(random() % 4);
                const bool failed = random() % 10 < failing;
                all.emplace_back(now, failed);
                std::size_t count = 0;
                std::size_t failures = 0;
                for (auto it = all.rbegin(); it != all.rend() && count < o.max_requests; ++it) {
                    if (o.window.count() > 0 && now - it->first >= o.window)
                        break;
                    ++count;
                    failures += it->second;
                }
                const bool expected = count >= o.min_requests &&
                                      static_cast<double>(failures) > o.max_failure_share * static_cast<double>(count);
                if (r.add(failed, now) != expected || r.requests() != count || r.failures() != failures)
                    FAIL("they differ in round " << round << " at request " << i);
            }
        }
    }

    TEST_CASE("options are checked, and the message names the field and the value")
    {
        coaccel::serve::hot_swap_options o;
        CHECK_FALSE(o.check());
        const auto message_with = [](auto change) {
            coaccel::serve::hot_swap_options bad;
            change(bad);
            return bad.check().message();
        };
        CHECK(message_with([](auto& b) { b.drain_limit = -1s; }) == "drain_limit is -1 s; it must not be negative");
        CHECK(message_with([](auto& b) { b.load_limit = -1ns; }) == "load_limit is -1 ns; it must not be negative");
        CHECK(message_with([](auto& b) { b.warm_up_limit = -1s; }) == "warm_up_limit is -1 s; it must not be negative");
        CHECK(message_with([](auto& b) { b.confirm_after = -1s; }) == "confirm_after is -1 s; it must not be negative");
        CHECK(message_with([](auto& b) { b.rollback.max_failure_share = 1.5; }) ==
              "rollback.max_failure_share is 1.5; it must be from 0 to 1");
        CHECK_FALSE(message_with([](auto& b) {
                        b.rollback.max_failure_share = std::numeric_limits<double>::quiet_NaN();
                    }) == coaccel::error_code().message());
        CHECK(message_with([](auto& b) { b.rollback.max_requests = 0; }) ==
              "rollback.max_requests is 0; it must be from 1 to 1000000");
        CHECK(message_with([](auto& b) { b.rollback.min_requests = 1001; }) ==
              "rollback.min_requests is 1001; it must be from 1 to rollback.max_requests");
        CHECK(message_with([](auto& b) { b.rollback.window = -1s; }) ==
              "rollback.window is -1 s; it must not be negative");
    }
}

} // namespace test_serve_rollback_rule
