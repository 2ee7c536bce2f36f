#include "lifecycle_fixture.hpp"

namespace test_device_lifecycle {

using namespace test::lifecycles;

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

TEST_SUITE_END();

} // namespace test_device_lifecycle
