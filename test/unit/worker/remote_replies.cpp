#include "fake_worker.hpp"

#include <coaccel/core/log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <string>

namespace test_worker_remote_replies {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using clock_type = detail::clock;

std::mutex log_mutex;
std::vector<std::string> log_lines;

void log(std::string_view line)
{
    const std::scoped_lock lock(log_mutex);
    log_lines.emplace_back(line);
}

std::vector<std::string> logged()
{
    REQUIRE(flush_log(20s));
    const std::scoped_lock lock(log_mutex);
    return log_lines;
}

} // namespace

TEST_SUITE_BEGIN("remote_replies");

TEST_CASE("the reason of a loss is one line of the log, regardless of its characters")
{
    test::remote_settings how;
    how.plan.log = &log;
    test::remote_world w(how);
    test::context_driver d(w);
    encoder out;
    out.put(message_type::lost);
    out.put_error(
        make_error_with_message(errc::context_lost, "bad\ncoaccel-worker 1: all is well\r\x1b[2J \xff k\xc3\xb6ln"));
    w.worker.say(out.record());
    d.run_until([&] { return d.losses > 0; });
    CHECK(d.reason == errc::context_lost);
    const auto lines = logged();
    const auto found = std::ranges::find_if(
        lines, [](const std::string& l) { return l.find("lost its context") != std::string::npos; });
    REQUIRE(found != lines.end());
    CHECK(found->ends_with("lost its context: bad\\x0acoaccel-worker 1: all is well\\x0d\\x1b[2J \\xff k\xc3\xb6ln"));
}

// Uses simulated time.
struct slow_worker : test::remote_fixture {
    slow_worker() : remote_fixture({.completion = completion::adaptive, .spin = 20us}) {}

    /// The times at which the context polled for the reply, relative to the request.
    std::vector<clock_type::duration> looks(clock_type::duration taken)
    {
        std::vector<clock_type::duration> looked;
        const auto began = now;
        test::exec<memory::fill<float>> r(memory::fill<float>{floats(3, 10), 1.0f}, exec_options{});
        driver.context->submit(r, now);
        record = world.worker.take();
        const auto id = decoded().id;
        for (now += spin_is_over; now < began + taken;) {
            const auto next = driver.context->turn(now);
            if (next.when == detail::next_turn::kind::again)
                looked.push_back(now - began);
            now = next.when == detail::next_turn::kind::again ? now + 10us : std::min(next.at, began + taken);
        }
        now = began + taken;
        encoder out;
        out.put(message_type::ended);
        out.put(id);
        out.put_error({});
        world.worker.say(out.record());
        driver.context->turn(now);
        CHECK_FALSE(driver.outcome(r));
        driver.ended.clear();
        return looked;
    }

    static constexpr auto spin_is_over = 100us;
    // Earlier than any real clock value, so that no polling depends on real time.
    clock_type::time_point now{1s};
};

TEST_CASE_FIXTURE(slow_worker, "a context sleeps until a reply is due, and polls then")
{
    constexpr auto length = 10ms;
    // At first there is no estimate: the time of a wake-up is not the completion time.
    CHECK(looks(length).empty());
    bool there = false;
    for (int i = 0; i < 20 && !there; ++i) {
        const auto seen = looks(length);
        there = !seen.empty() && seen.back() > length - 50us;
    }
    CHECK(there);
    const auto looked = looks(length);
    REQUIRE_FALSE(looked.empty());
    CHECK(looked.front() > length - 2ms);
    CHECK(looked.back() > length - 50us);
    // Polling is limited.
    const auto late = looks(10 * length);
    REQUIRE_FALSE(late.empty());
    CHECK(late.back() < 2 * length);
}

TEST_CASE("a context that waits for room in the ring checks for it at least every millisecond")
{
    test::remote_fixture f({.completion = completion::adaptive, .spin = 20us});
    constexpr std::uint32_t count = 20000;
    for (std::uint32_t i = 0; i < count; ++i)
        f.driver.context->release(f.buffer(i, 10));
    auto now = clock_type::time_point(1s);
    std::uint32_t seen = 0;
    int turns = 0;
    for (; seen < count && turns < 100; ++turns) {
        const auto next = f.driver.context->turn(now);
        if (next.when == detail::next_turn::kind::sleep) {
            CHECK(next.at > now);
            CHECK(next.at <= now + 1ms);
        }
        now += 1ms;
        while (!f.world.worker.take().empty())
            ++seen;
    }
    CHECK(seen == count);
    CHECK(f.driver.context->turn(now).when == detail::next_turn::kind::idle);
}

TEST_CASE("a context without a spin time never polls")
{
    test::remote_fixture f({.completion = completion::adaptive});
    auto now = clock_type::time_point(1s);
    for (int i = 0; i < 10; ++i) {
        test::exec<memory::fill<float>> r(memory::fill<float>{f.floats(3, 10), 1.0f}, exec_options{});
        f.driver.context->submit(r, now);
        f.record = f.world.worker.take();
        const auto next = f.driver.context->turn(now += 9ms);
        CHECK(next.when == detail::next_turn::kind::sleep);
        CHECK(next.at == clock_type::time_point::max());
        f.answer(f.decoded().id);
        now += 1ms;
        CHECK_FALSE(f.driver.outcome(r));
        f.driver.ended.clear();
    }
}

TEST_SUITE_END();

} // namespace test_worker_remote_replies
