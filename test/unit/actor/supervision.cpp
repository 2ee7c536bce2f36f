#include <coaccel/actor/supervision.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace test_actor_supervision {

using namespace coaccel;
using namespace std::chrono_literals;

using indices = std::vector<std::size_t>;

namespace {

const supervision::time_point epoch{};

directive by_kind(const error_code& ec) noexcept
{
    if (ec == errc::invalid_argument)
        return directive::resume;
    if (ec == errc::closed)
        return directive::stop;
    return ec == errc::device_lost ? directive::escalate : directive::restart;
}

restart_policy policy(strategy s, std::chrono::milliseconds delay = 100ms)
{
    restart_policy p;
    p.decider = &by_kind;
    p.strategy = s;
    p.max_restarts = 3;
    p.window = 60s;
    p.initial_backoff = delay;
    p.max_backoff = 10s;
    p.multiplier = 1.0;
    p.jitter = 0.0;
    return p;
}

bool nothing(const supervision_step& s)
{
    return s.stop.empty() && s.start.empty() && s.resume.empty() && !s.escalate && !s.finished;
}

constexpr auto failure = errc::context_lost;

} // namespace

TEST_SUITE_BEGIN("supervision");

TEST_CASE("all children start in order")
{
    supervision s(policy(strategy::one_for_one), 3);
    CHECK(s.start().start == indices{0, 1, 2});
    CHECK_FALSE(s.next_due());
    CHECK_FALSE(s.finished());
}

TEST_CASE("a supervisor without children is finished at once")
{
    supervision s(policy(strategy::one_for_all), 0);
    CHECK(s.start().finished);
}

TEST_CASE("one_for_one restarts only the failed child, after the delay")
{
    supervision s(policy(strategy::one_for_one), 3);
    (void)s.start();
    CHECK(s.child_failed(1, failure, epoch, 0).stop == indices{1});
    CHECK_FALSE(s.next_due());
    CHECK(nothing(s.child_stopped(1, epoch + 1s)));
    CHECK(s.next_due() == epoch + 1s + 100ms);
    CHECK(nothing(s.timer(epoch + 1s)));
    CHECK(s.timer(epoch + 1s + 100ms).start == indices{1});
    CHECK_FALSE(s.next_due());
}

TEST_CASE("a delay of zero starts at once")
{
    supervision s(policy(strategy::one_for_one, 0ms), 1);
    (void)s.start();
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{0});
    CHECK(s.child_stopped(0, epoch).start == indices{0});
}

TEST_CASE("restarts are counted, and a step reports a used-up budget")
{
    supervision s(policy(strategy::one_for_one, 0ms), 1);
    (void)s.start();
    for (std::size_t n = 1; n <= 3; ++n) {
        const auto step = s.child_failed(0, failure, epoch, 0);
        CHECK(step.restarts == n);
        CHECK_FALSE(step.used_up);
        CHECK(s.child_stopped(0, epoch).start == indices{0});
    }
    const auto last = s.child_failed(0, failure, epoch, 0);
    CHECK(last.escalate);
    CHECK(last.used_up);
    CHECK(last.restarts == 0);
    supervision other(policy(strategy::one_for_one), 1);
    (void)other.start();
    const auto wanted = other.child_failed(0, errc::device_lost, epoch, 0);
    CHECK(wanted.escalate);
    CHECK_FALSE(wanted.used_up);
}

TEST_CASE("one_for_one restarts are independent of each other")
{
    supervision s(policy(strategy::one_for_one), 2);
    (void)s.start();
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{0});
    CHECK(s.child_failed(1, failure, epoch, 0).stop == indices{1});
    CHECK(nothing(s.child_stopped(1, epoch)));
    CHECK(s.next_due() == epoch + 100ms);
    CHECK(s.timer(epoch + 100ms).start == indices{1});
    CHECK(nothing(s.child_stopped(0, epoch + 5s)));
    CHECK(s.timer(epoch + 6s).start == indices{0});
}

TEST_CASE("one_for_all stops the children one by one, last first, then starts them all")
{
    supervision s(policy(strategy::one_for_all), 3);
    (void)s.start();
    CHECK(s.child_failed(1, failure, epoch, 0).stop == indices{2});
    CHECK(s.child_stopped(2, epoch).stop == indices{1});
    CHECK(s.child_stopped(1, epoch).stop == indices{0});
    CHECK(nothing(s.child_stopped(0, epoch)));
    CHECK(s.timer(epoch + 100ms).start == indices{0, 1, 2});
}

TEST_CASE("rest_for_one does not restart children declared before the failed one")
{
    supervision s(policy(strategy::rest_for_one), 4);
    (void)s.start();
    CHECK(s.child_failed(2, failure, epoch, 0).stop == indices{3});
    CHECK(s.child_stopped(3, epoch).stop == indices{2});
    CHECK(nothing(s.child_stopped(2, epoch)));
    CHECK(s.timer(epoch + 100ms).start == indices{2, 3});
}

TEST_CASE("a failure of an earlier child widens a restart in progress")
{
    supervision s(policy(strategy::rest_for_one), 3);
    (void)s.start();
    CHECK(s.child_failed(2, failure, epoch, 0).stop == indices{2});
    CHECK(nothing(s.child_stopped(2, epoch)));
    CHECK(s.next_due());
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{1});
    CHECK_FALSE(s.next_due());
    CHECK(s.child_stopped(1, epoch).stop == indices{0});
    CHECK(nothing(s.child_stopped(0, epoch)));
    CHECK(s.timer(epoch + 1s).start == indices{0, 1, 2});
}

TEST_CASE("a child that fails while its stop is due does not use the budget")
{
    restart_policy p = policy(strategy::one_for_all, 0ms);
    p.max_restarts = 1;
    supervision s(p, 2);
    (void)s.start();
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{1});
    CHECK(nothing(s.child_failed(1, failure, epoch, 0)));
    CHECK(s.child_stopped(1, epoch).stop == indices{0});
    CHECK(s.child_stopped(0, epoch).start == indices{0, 1});
    CHECK(s.child_failed(1, failure, epoch, 0).escalate == error_code(failure));
}

TEST_CASE("the budget is per child for one_for_one and shared otherwise")
{
    for (auto kind : {strategy::one_for_one, strategy::rest_for_one}) {
        restart_policy p = policy(kind, 0ms);
        p.max_restarts = 1;
        supervision s(p, 2);
        (void)s.start();
        CHECK(s.child_failed(1, failure, epoch, 0).stop == indices{1});
        CHECK(s.child_stopped(1, epoch).start == indices{1});
        const auto step = s.child_failed(0, failure, epoch, 0);
        CHECK(step.escalate.has_value() == (kind == strategy::rest_for_one));
    }
}

TEST_CASE("resume continues the failed child")
{
    supervision s(policy(strategy::one_for_all), 2);
    (void)s.start();
    CHECK(s.child_failed(0, errc::invalid_argument, epoch, 0).resume == indices{0});
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{1});
}

TEST_CASE("stop ends one child for good, and the last one finishes")
{
    supervision s(policy(strategy::one_for_all), 2);
    (void)s.start();
    CHECK(s.child_failed(0, errc::closed, epoch, 0).stop == indices{0});
    CHECK(nothing(s.child_stopped(0, epoch)));
    CHECK(s.child_failed(1, failure, epoch, 0).stop == indices{1});
    CHECK(nothing(s.child_stopped(1, epoch)));
    CHECK(s.timer(epoch + 1s).start == indices{1});
    CHECK(s.child_stopped(1, epoch).finished);
}

TEST_CASE("a child is retired when it has ended and this supervisor will not restart it")
{
    supervision s(policy(strategy::one_for_one, 0ms), 3);
    (void)s.start();
    CHECK(s.child_failed(0, errc::closed, epoch, 0).retire.empty());
    CHECK(s.child_stopped(0, epoch).retire == indices{0});
    CHECK(s.child_stopped(1, epoch).retire == indices{1});
    CHECK(s.child_failed(2, failure, epoch, 0).stop == indices{2});
    CHECK(s.child_stopped(2, epoch).retire.empty());
    CHECK(s.stop().stop == indices{2});
    // Children that end with the supervisor are not retired: the parent supervisor decides about them.
    CHECK(s.child_stopped(2, epoch).retire.empty());
}

TEST_CASE("an escalated child waits for the parent's decision")
{
    supervision s(policy(strategy::one_for_one), 2);
    (void)s.start();
    const auto step = s.child_failed(1, errc::device_lost, epoch, 0);
    CHECK(step.escalate == error_code(errc::device_lost));
    CHECK(step.stop.empty());
    CHECK(s.resume().resume == indices{1});
    CHECK(nothing(s.resume()));
    CHECK(s.child_failed(1, errc::device_lost, epoch, 0).escalate);
    CHECK(s.stop().stop == indices{1});
    CHECK(s.child_stopped(1, epoch).stop == indices{0});
    CHECK(s.child_stopped(0, epoch).finished);
}

TEST_CASE("stop during a restart stops the remaining children")
{
    supervision s(policy(strategy::one_for_all), 3);
    (void)s.start();
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{2});
    CHECK(s.child_stopped(2, epoch).stop == indices{1});
    CHECK(nothing(s.stop()));
    CHECK(s.child_stopped(1, epoch).stop == indices{0});
    CHECK(s.child_stopped(0, epoch).finished);
    CHECK_FALSE(s.next_due());
}

TEST_CASE("stop during the back-off finishes at once")
{
    supervision s(policy(strategy::one_for_one), 1);
    (void)s.start();
    (void)s.child_failed(0, failure, epoch, 0);
    (void)s.child_stopped(0, epoch);
    CHECK(s.stop().finished);
    CHECK_FALSE(s.next_due());
}

TEST_CASE("children that ended by themselves are not restarted when others fail")
{
    supervision s(policy(strategy::one_for_all, 0ms), 3);
    (void)s.start();
    CHECK(nothing(s.child_stopped(1, epoch)));
    CHECK(s.child_failed(0, failure, epoch, 0).stop == indices{2});
    CHECK(s.child_stopped(2, epoch).stop == indices{0});
    CHECK(s.child_stopped(0, epoch).start == indices{0, 2});
}

TEST_CASE("random events never start a child twice or stop a dead one, and a stop always finishes")
{
    std::minstd_rand random(1);
    const error_code errors[] = {failure, errc::invalid_argument, errc::closed, errc::device_lost};
    for (int round = 0; round < 3000; ++round) {
        restart_policy p = policy(static_cast<strategy>(round % 3), round % 2 ? 0ms : 50ms);
        p.max_restarts = static_cast<int>(random() % 4);
        const std::size_t n = 1 + random() % 4;
        supervision s(p, n);
        enum class life { none, running, failed, stopping };
        std::vector<life> lives(n, life::none);
        auto now = epoch;
        bool finished = false;
        auto apply = [&](const supervision_step& step) {
            for (auto i : step.stop) {
                REQUIRE((lives[i] == life::running || lives[i] == life::failed));
                lives[i] = life::stopping;
            }
            for (auto i : step.start) {
                REQUIRE(lives[i] == life::none);
                lives[i] = life::running;
            }
            for (auto i : step.resume) {
                REQUIRE(lives[i] == life::failed);
                lives[i] = life::running;
            }
            finished = finished || step.finished;
        };
        apply(s.start());
        for (int event = 0; event < 30 && !finished; ++event) {
            now += std::chrono::milliseconds(random() % 40);
            const std::size_t i = random() % n;
            switch (random() % 4) {
            case 0:
                if (lives[i] == life::running) {
                    lives[i] = life::failed;
                    apply(s.child_failed(i, errors[random() % 4], now, 0.5));
                }
                break;
            case 1:
                if (lives[i] == life::stopping || (lives[i] == life::running && random() % 8 == 0)) {
                    lives[i] = life::none;
                    apply(s.child_stopped(i, now));
                }
                break;
            case 2: apply(s.timer(now)); break;
            default:
                if (random() % 4 == 0)
                    apply(s.resume());
            }
        }
        apply(s.stop());
        for (std::size_t guard = 0; !finished && guard <= n; ++guard)
            for (std::size_t i = 0; i < n; ++i)
                if (lives[i] == life::stopping) {
                    lives[i] = life::none;
                    apply(s.child_stopped(i, now));
                }
        REQUIRE(finished);
        REQUIRE(std::count(lives.begin(), lives.end(), life::none) == static_cast<std::ptrdiff_t>(n));
    }
}

TEST_SUITE_END();

} // namespace test_actor_supervision
