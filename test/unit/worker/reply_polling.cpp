#include "worker/parent/reply_polling.hpp"

#include "support/context_driver.hpp"

#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace test_worker_reply_polling {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using worker::reply_polling;
using duration = reply_polling::duration;
using time_point = reply_polling::time_point;

constexpr auto never = time_point::max();
constexpr std::array strategies{completion::adaptive, completion::host_fn, completion::polled, completion::sync};

context_options with(completion c)
{
    context_options options;
    options.completion = c;
    return options;
}

struct fixture {
    explicit fixture(completion c, std::chrono::nanoseconds spin) : polling(with(c), spin) {}

    /// One turn that begins and ends after this time.
    reply_polling::decision turn(duration later, bool moved)
    {
        now += later;
        polling.begin_turn(now);
        return polling.end_turn(moved, now);
    }

    reply_polling polling;
    time_point now{100h};
};

/// All sequences of `length` numbers below `base`.
template <class Function>
void for_each_sequence(std::size_t length, int base, Function function)
{
    std::vector<int> digits(length);
    for (;;) {
        function(digits);
        std::size_t i = 0;
        while (i < length && ++digits[i] == base)
            digits[i++] = 0;
        if (i == length)
            return;
    }
}

} // namespace

TEST_SUITE_BEGIN("reply_polling");

TEST_CASE("without a time to spin, only the strategy `polled` polls for long")
{
    for (const auto c : strategies) {
        CAPTURE(static_cast<int>(c));
        fixture f(c, 0ns);
        CHECK_FALSE(f.polling.spins());
        f.polling.submitted(f.now);
        // host_fn polls for the time that going to sleep takes.
        CHECK(f.turn(0us, true).poll == (c == completion::polled || c == completion::host_fn));
        CHECK(f.turn(10us, false).poll == (c == completion::polled));
    }
}

TEST_CASE("with a time to spin, every strategy polls for that time after the last progress")
{
    for (const auto c : strategies) {
        CAPTURE(static_cast<int>(c));
        fixture f(c, 20us);
        CHECK(f.polling.spins());
        f.polling.submitted(f.now);
        CHECK(f.turn(19us, false).poll);
        CHECK(f.turn(0us, true).poll);
        CHECK(f.turn(19us, false).poll);
        const auto last = f.turn(1us, false);
        CHECK(last.poll == (c == completion::polled));
        CHECK(last.look_at == never);
    }
}

TEST_CASE("a submitted request counts as progress")
{
    fixture f(completion::sync, 20us);
    CHECK_FALSE(f.turn(0us, false).poll);
    f.polling.submitted(f.now);
    CHECK(f.turn(10us, false).poll);
}

TEST_CASE("the time without progress counts from the last progress, or from the end of the sleep")
{
    fixture f(completion::polled, 20us);
    CHECK(f.turn(0us, true).looked_for == 0us);
    CHECK(f.turn(7us, false).looked_for == 7us);
    CHECK(f.turn(8us, false).looked_for == 15us);
    CHECK(f.turn(1us, true).looked_for == 0us);
    // After a gap the context polls from the beginning.
    CHECK(f.turn(1ms, false).looked_for == 0us);
    CHECK(f.turn(5us, false).looked_for == 5us);
}

TEST_CASE("an idle context needs no announcement that it is awake")
{
    fixture f(completion::sync, 20us);
    CHECK_FALSE(f.turn(0us, false).poll);
    f.polling.idle(f.now);
    f.polling.submitted(f.now);
    const auto next = f.turn(1us, false);
    CHECK(next.poll);
    CHECK_FALSE(next.awake);
}

TEST_CASE("with an estimate the context sleeps, and polls around the expected end")
{
    fixture f(completion::adaptive, 20us);
    test::exec<memory::fill<float>> r(memory::fill<float>{}, exec_options{});
    const auto send = [&](std::uint64_t id) {
        r.launched = f.now;
        f.polling.submitted(f.now);
        f.polling.sent_alone(id, r);
    };
    send(1);
    CHECK(f.turn(0us, true).poll);
    CHECK(f.turn(30us, false).look_at == never);
    // Measured after a sleep, so it is an upper limit, of which the estimate takes 7/8.
    f.now += 770us;
    f.polling.begin_turn(f.now);
    f.polling.replied(1, f.now);
    f.polling.idle(f.now);

    const auto begin = f.now += 1ms;
    send(2);
    // A reply to another request does not end the estimate.
    f.polling.replied(3, f.now);
    CHECK(f.turn(0us, true).poll);
    const auto sleeps = f.turn(30us, false);
    CHECK_FALSE(sleeps.poll);
    const auto expected = begin + 700us;
    const auto margin = 240us;
    CHECK(sleeps.look_at == expected - margin);
    const auto due = f.turn(sleeps.look_at - f.now, false);
    CHECK(due.poll);
    CHECK(due.awake);
    CHECK(f.turn(2 * margin - 1us, false).poll);
    const auto late = f.turn(1us, false);
    CHECK_FALSE(late.poll);
    CHECK(late.look_at == never);
}

TEST_CASE("an estimate is not used if the worker's options allow no polling")
{
    fixture f(completion::adaptive, 0ns);
    test::exec<memory::fill<float>> r(memory::fill<float>{}, exec_options{});
    for (std::uint64_t id = 1; id < 10; ++id) {
        r.launched = f.now;
        f.polling.sent_alone(id, r);
        const auto next = f.turn(10us, true);
        CHECK_FALSE(next.poll);
        CHECK(next.look_at == never);
        f.polling.replied(id, f.now);
        f.polling.idle(f.now);
    }
}

TEST_CASE("the decisions are consistent in every sequence of turns")
{
    // Each step is one of: idle, submitted, or a turn after a short, middle or long time, with or without progress.
    constexpr std::array<duration, 3> times{1us, 30us, 100us};
    constexpr int idle = 6, submitted = 7, steps = 8;
    int polls = 0, sleeps = 0;
    for (const auto c : strategies)
        for (const auto spin : {0ns, 20'000ns})
            for_each_sequence(5, steps, [&](const std::vector<int>& sequence) {
                fixture f(c, spin);
                f.polling.idle(f.now);
                auto last_look = f.now, last_moved = f.now;
                f.polling.submitted(f.now);
                bool polled = true, ok = true;
                for (const int step : sequence) {
                    if (step == idle) {
                        f.polling.idle(f.now);
                        last_look = f.now;
                        polled = true;
                        continue;
                    }
                    if (step == submitted) {
                        f.polling.submitted(f.now);
                        last_moved = f.now;
                        continue;
                    }
                    const bool moved = step % 2 == 1;
                    const auto gap =
                        f.now + times[static_cast<std::size_t>(step / 2)] - std::max(last_look, last_moved);
                    const auto next = f.turn(times[static_cast<std::size_t>(step / 2)], moved);
                    const bool was_polling = polled && gap < 50us;
                    last_look = f.now;
                    if (moved)
                        last_moved = f.now;
                    ok = ok && next.awake == (next.poll && !was_polling);
                    ok = ok && (next.poll || f.now - last_moved >= spin);
                    ok = ok && (next.poll || c != completion::polled);
                    ok = ok && next.looked_for >= 0ns && next.looked_for <= f.now - last_moved;
                    ok = ok && (!next.awake || next.looked_for == 0ns);
                    // Nothing was sent alone, so there is no estimate.
                    ok = ok && next.look_at == never;
                    polled = next.poll;
                    ++(next.poll ? polls : sleeps);
                }
                if (!ok) {
                    std::string text;
                    for (const int step : sequence)
                        text += std::to_string(step) + ' ';
                    FAIL_CHECK("strategy ", static_cast<int>(c), ", spin ", spin.count(), ": ", text);
                }
            });
    CHECK(polls > 10'000);
    CHECK(sleeps > 10'000);
}

TEST_SUITE_END();

} // namespace test_worker_reply_polling
