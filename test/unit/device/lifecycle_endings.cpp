#include "lifecycle_fixture.hpp"

namespace test_device_lifecycle_endings {

using namespace test::lifecycles;

TEST_SUITE_BEGIN("lifecycle: stops and replacements");

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

} // namespace test_device_lifecycle_endings
