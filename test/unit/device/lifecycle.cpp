#include "device/lifecycle.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace test_device_lifecycle {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::lifecycle;
using command = lifecycle::command;

const error_code dead = errc::context_lost;
const error_code refused = errc::start_failed;
const error_code gone = errc::device_lost;

struct machine : lifecycle {
    explicit machine(restart_policy p = policy()) : lifecycle(p) {}

    static restart_policy policy()
    {
        restart_policy p;
        p.max_restarts = 2;
        p.window = 60s;
        p.initial_backoff = 100ms;
        p.jitter = 0;
        return p;
    }

    void to_ready()
    {
        REQUIRE(start().what == command::create);
        created();
    }

    lifecycle::time_point t{};
};

TEST_SUITE_BEGIN("lifecycle");

TEST_CASE("a device starts once and is ready when its context is made")
{
    machine m;
    CHECK(m.state() == device_state::starting);
    CHECK(m.start().what == command::create);
    CHECK(m.start().what == command::none);
    CHECK(m.state() == device_state::starting);
    m.created();
    CHECK(m.state() == device_state::ready);
    CHECK(m.running());
}

TEST_CASE("directive::resume restarts, within the budget and after the delay")
{
    auto p = machine::policy();
    p.decider = [](const error_code&) noexcept { return directive::resume; };
    machine m(p);
    m.to_ready();
    for (int i = 0; i < 2; ++i) {
        const auto step = m.lost(dead, m.t, 0);
        CHECK(step.what == command::wait);
        CHECK(step.when > m.t);
        CHECK(m.due().what == command::create);
        m.created();
    }
    CHECK(m.lost(dead, m.t, 0).what == command::fail);
}

TEST_CASE("a lost context is rebuilt after the policy's delay")
{
    machine m;
    m.to_ready();
    m.condemned();
    CHECK(m.state() == device_state::suspect);
    const auto step = m.lost(dead, m.t, 0);
    CHECK(step.what == command::wait);
    CHECK(step.when == m.t + 100ms);
    CHECK(m.state() == device_state::rebuilding);
    CHECK(m.reason() == dead);
    CHECK(m.due().what == command::create);
    CHECK(m.due().what == command::none);
    CHECK(m.state() == device_state::rebuilding);
    m.created();
    CHECK(m.state() == device_state::ready);
}

TEST_CASE("a standby context replaces a lost context without delay, while the budget lasts")
{
    machine m;
    m.to_ready();
    for (int i = 0; i < 2; ++i) {
        CHECK(m.lost(dead, m.t, 0, true).what == command::create);
        CHECK(m.state() == device_state::rebuilding);
        CHECK(m.due().what == command::none);
        m.created();
    }
    CHECK(m.lost(dead, m.t, 0, true).what == command::fail);
}

TEST_CASE("a spent budget fails the device")
{
    machine m;
    m.to_ready();
    for (int i = 0; i < 2; ++i) {
        CHECK(m.lost(dead, m.t, 0).what == command::wait);
        m.due();
        m.created();
    }
    CHECK(m.lost(dead, m.t, 0).what == command::fail);
    CHECK(m.state() == device_state::failed);
    CHECK(m.failed());
    CHECK(m.due().what == command::none);
}

TEST_CASE("losses whose cause is known do not count, and their restart is not delayed")
{
    machine m;
    m.to_ready();
    for (int i = 0; i < 10; ++i) {
        CHECK(m.lost_excused(dead, m.t, 0).what == command::create);
        CHECK(m.state() == device_state::rebuilding);
        CHECK(m.reason() == dead);
        m.created();
    }
    CHECK(m.restarts(m.t) == 0);
    // Two losses use up the budget; the third explains the second.
    for (int i = 0; i < 2; ++i) {
        CHECK(m.lost(dead, m.t, 0, true).what == command::create);
        m.created();
    }
    CHECK(m.restarts(m.t) == 2);
    CHECK(m.lost_excused(dead, m.t, 1).what == command::create);
    m.created();
    CHECK(m.restarts(m.t) == 1);
    // A budget that is used up stays so, and does not prevent a restart that does not count.
    CHECK(m.lost(dead, m.t, 0, true).what == command::create);
    m.created();
    CHECK(m.lost_excused(dead, m.t, 0).what == command::create);
    CHECK(m.state() == device_state::rebuilding);
    CHECK_FALSE(m.used_up());
    m.created();
    CHECK(m.restarts(m.t) == 2);
    CHECK(m.lost(dead, m.t, 0, true).what == command::fail);
}

TEST_CASE("an excused loss fails the device if the policy says so")
{
    auto p = machine::policy();
    p.decider = [](const error_code&) noexcept { return directive::stop; };
    machine m(p);
    m.to_ready();
    CHECK(m.lost_excused(dead, m.t, 0).what == command::fail);
    CHECK(m.state() == device_state::failed);
}

TEST_CASE("a failed device is revived with a new budget, any number of times")
{
    machine m;
    m.to_ready();
    CHECK(m.healthy());
    CHECK(m.revive().what == command::none);
    for (int times = 0; times < 3; ++times) {
        for (int i = 0; i < 2; ++i) {
            REQUIRE(m.lost(dead, m.t, 0).what == command::wait);
            CHECK(m.revive().what == command::none);
            m.due();
            CHECK(m.revive().what == command::none);
            m.created();
        }
        REQUIRE(m.lost(dead, m.t, 0).what == command::fail);
        CHECK_FALSE(m.failed_for_good());
        CHECK(m.revive().what == command::create);
        CHECK(m.state() == device_state::rebuilding);
        CHECK(m.revive().what == command::none);
        m.created();
        CHECK(m.state() == device_state::ready);
    }
}

TEST_CASE("a revival whose contexts are refused fails when its budget is spent")
{
    machine m;
    m.to_ready();
    m.lost(gone, m.t, 0);
    REQUIRE(m.failed());
    CHECK(m.revive().what == command::create);
    for (int i = 0; i < 2; ++i) {
        CHECK(m.create_failed(refused, m.t, 0).what == command::wait);
        CHECK(m.due().what == command::create);
    }
    CHECK(m.create_failed(refused, m.t, 0).what == command::fail);
    CHECK(m.reason() == refused);
    CHECK(m.revive().what == command::create);
}

TEST_CASE("a device that failed for good, or was asked to stop, is not revived")
{
    machine m;
    m.to_ready();
    CHECK(m.lost_for_good(dead).what == command::fail);
    CHECK(m.failed_for_good());
    CHECK(m.revive().what == command::none);
    CHECK(m.state() == device_state::failed);

    machine other;
    other.to_ready();
    other.lost(gone, other.t, 0);
    REQUIRE(other.failed());
    other.stop(false);
    CHECK(other.revive().what == command::none);
}

TEST_CASE("refused starts use the same budget, and the state stays `starting` until the first success")
{
    machine m;
    m.start();
    CHECK(m.create_failed(refused, m.t, 0).what == command::wait);
    CHECK(m.state() == device_state::starting);
    m.due();
    CHECK(m.create_failed(refused, m.t, 0).what == command::wait);
    m.due();
    CHECK_FALSE(m.used_up());
    CHECK(m.create_failed(refused, m.t, 0).what == command::fail);
    CHECK(m.reason() == refused);
    CHECK(m.used_up());
}

TEST_CASE("errors that a restart cannot fix fail the device at once")
{
    for (const errc why : {errc::device_lost, errc::backend_unavailable, errc::invalid_option, errc::library_missing,
                           errc::library_too_old}) {
        machine m;
        m.start();
        CHECK(m.create_failed(why, m.t, 0).what == command::fail);
        machine n;
        n.to_ready();
        CHECK(n.lost(why, n.t, 0).what == command::fail);
        CHECK_FALSE(n.used_up());
    }
}

TEST_CASE("the decider's directive determines the next command")
{
    const std::pair<directive (*)(const error_code&) noexcept, command> table[] = {
        {[](const error_code&) noexcept { return directive::stop; }, command::fail},
        {[](const error_code&) noexcept { return directive::escalate; }, command::fail},
        {[](const error_code&) noexcept { return directive::resume; }, command::wait},
        {[](const error_code&) noexcept { return directive::restart; }, command::wait},
    };
    for (const auto& [decider, expected] : table) {
        auto p = machine::policy();
        p.decider = decider;
        machine m(p);
        m.to_ready();
        CHECK(m.lost(dead, m.t, 0).what == expected);
    }
}

TEST_CASE("stopping waits for work, then closes the context, then finishes")
{
    machine m;
    m.to_ready();
    CHECK(m.advance_stop(false).what == command::none);
    m.stop(false);
    CHECK(m.state() == device_state::stopping);
    CHECK(m.advance_stop(true).what == command::none);
    CHECK(m.advance_stop(false).what == command::close);
    CHECK(m.advance_stop(false).what == command::none);
    m.closed();
    CHECK(m.state() == device_state::stopped);
    CHECK(m.advance_stop(false).what == command::none);
}

TEST_CASE("abandoning does not wait for work")
{
    machine m;
    m.to_ready();
    m.stop(false);
    CHECK(m.advance_stop(true).what == command::none);
    m.stop(true);
    CHECK(m.advance_stop(true).what == command::close);
}

TEST_CASE("a device can be stopped in every phase")
{
    SUBCASE("before its start")
    {
        machine m;
        m.stop(false);
        CHECK(m.start().what == command::none);
        CHECK(m.advance_stop(false).what == command::finish);
        CHECK(m.state() == device_state::stopped);
    }
    SUBCASE("while its context is being made")
    {
        machine m;
        m.start();
        m.stop(true);
        CHECK(m.advance_stop(false).what == command::give_up);
        CHECK(m.advance_stop(false).what == command::none);
        m.created();
        CHECK(m.advance_stop(false).what == command::close);
    }
    SUBCASE("while a context is being made for waiting work")
    {
        machine m;
        m.start();
        m.stop(false);
        CHECK(m.advance_stop(true).what == command::none);
        CHECK(m.advance_stop(false).what == command::give_up);
        CHECK(m.advance_stop(false).what == command::none);
    }
    SUBCASE("while a context is being made, with the work abandoned")
    {
        machine m;
        m.start();
        m.stop(true);
        CHECK(m.advance_stop(true).what == command::give_up);
    }
    SUBCASE("while its context is being made and is then refused")
    {
        machine m;
        m.start();
        m.stop(false);
        CHECK(m.create_failed(refused, m.t, 0).what == command::wait);
        CHECK(m.advance_stop(false).what == command::finish);
    }
    SUBCASE("during the restart delay, with work that needs the next context")
    {
        machine m;
        m.to_ready();
        m.lost(dead, m.t, 0);
        m.stop(false);
        CHECK(m.advance_stop(true).what == command::none);
        CHECK(m.due().what == command::create);
        m.created();
        CHECK(m.advance_stop(true).what == command::none);
        CHECK(m.advance_stop(false).what == command::close);
    }
    SUBCASE("after it has failed")
    {
        machine m;
        m.start();
        m.create_failed(errc::device_lost, m.t, 0);
        m.stop(false);
        CHECK(m.advance_stop(false).what == command::finish);
        CHECK(m.state() == device_state::stopped);
    }
}

TEST_CASE("a context lost during its creation is retried, and a creation that reports context_lost is not")
{
    machine m;
    m.start();
    CHECK(m.lost(dead, m.t, 0).what == command::wait);
    CHECK(m.state() == device_state::starting);
    CHECK(m.due().what == command::create);
    m.created();
    CHECK(m.state() == device_state::ready);
    machine n;
    n.start();
    CHECK(n.create_failed(dead, n.t, 0).what == command::fail);
}

TEST_CASE("a replacement waits for work in flight, closes the context, then makes another")
{
    machine m;
    m.to_ready();
    CHECK(m.open());
    CHECK(m.advance_replace(false).what == command::none);
    m.replace();
    CHECK_FALSE(m.open());
    CHECK(m.running());
    CHECK(m.state() == device_state::rebuilding);
    CHECK(m.advance_replace(true).what == command::none);
    CHECK(m.advance_replace(false).what == command::close);
    CHECK(m.advance_replace(false).what == command::none);
    CHECK(m.state() == device_state::rebuilding);
    CHECK(m.gone(true).what == command::create);
    CHECK(m.state() == device_state::rebuilding);
    CHECK_FALSE(m.open());
    m.created();
    CHECK(m.state() == device_state::ready);
    CHECK(m.open());
    CHECK(m.advance_replace(false).what == command::none);
    CHECK_FALSE(m.reason());
}

TEST_CASE("replacements do not count as restarts")
{
    machine m;
    m.to_ready();
    for (int i = 0; i < 10; ++i) {
        m.replace();
        REQUIRE(m.advance_replace(false).what == command::close);
        REQUIRE(m.gone(false).what == command::create);
        m.created();
    }
    for (int i = 0; i < 2; ++i) {
        CHECK(m.lost(dead, m.t, 0).what == command::wait);
        m.due();
        m.created();
    }
    CHECK(m.lost(dead, m.t, 0).what == command::fail);
}

TEST_CASE("a context creation that begins after a replacement request serves the request")
{
    machine m;
    m.to_ready();
    SUBCASE("while the last context is being closed")
    {
        m.replace();
        m.advance_replace(false);
        m.replace();
        m.gone(false);
    }
    SUBCASE("during the restart delay")
    {
        m.lost(dead, m.t, 0);
        m.replace();
        m.due();
    }
    SUBCASE("when the fault comes first")
    {
        m.replace();
        m.condemned();
        CHECK(m.state() == device_state::suspect);
        CHECK(m.advance_replace(false).what == command::none);
        m.lost(dead, m.t, 0);
        m.due();
    }
    m.created();
    CHECK(m.open());
    CHECK(m.advance_replace(false).what == command::none);
}

TEST_CASE("a replacement requested during a context creation needs another context")
{
    machine m;
    m.start();
    m.replace();
    m.created();
    CHECK_FALSE(m.open());
    CHECK(m.state() == device_state::rebuilding);
    CHECK(m.advance_replace(false).what == command::close);
}

TEST_CASE("a replacement whose context is refused continues under the restart policy")
{
    machine m;
    m.to_ready();
    m.replace();
    m.advance_replace(false);
    m.gone(false);
    CHECK(m.create_failed(refused, m.t, 0).what == command::wait);
    CHECK(m.reason() == refused);
    CHECK(m.state() == device_state::rebuilding);
    CHECK(m.due().what == command::create);
    CHECK(m.create_failed(refused, m.t, 0).what == command::wait);
    m.due();
    CHECK(m.create_failed(refused, m.t, 0).what == command::fail);
    m.replace();
    CHECK(m.state() == device_state::failed);
    CHECK(m.advance_replace(false).what == command::none);
}

TEST_CASE("stopping drops a replacement that has not begun, and cuts short one that has")
{
    machine m;
    m.to_ready();
    m.replace();
    SUBCASE("not begun")
    {
        m.stop(false);
        CHECK(m.open());
        CHECK(m.advance_replace(false).what == command::none);
        m.replace();
        CHECK(m.open());
        CHECK(m.advance_stop(false).what == command::close);
        CHECK(m.gone(false).what == command::finish);
    }
    SUBCASE("begun, without work")
    {
        m.advance_replace(false);
        m.stop(false);
        CHECK(m.state() == device_state::stopping);
        CHECK(m.advance_stop(false).what == command::none);
        CHECK(m.gone(false).what == command::finish);
        CHECK(m.state() == device_state::stopped);
    }
    SUBCASE("begun, with work that needs the next context")
    {
        m.advance_replace(false);
        m.stop(false);
        CHECK(m.advance_stop(true).what == command::none);
        CHECK(m.gone(true).what == command::create);
        m.created();
        CHECK(m.open());
        CHECK(m.advance_stop(true).what == command::none);
        CHECK(m.advance_stop(false).what == command::close);
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_lifecycle
