#include "device/device_inbox.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace test_device_device_inbox {

namespace {

using namespace coaccel::detail;
using kind = inbox_node::kind;

/// The kinds of the messages in the inbox, in order.
std::vector<kind> take(device_inbox& inbox)
{
    std::vector<kind> all;
    for (inbox_node* n = inbox.take(); n; n = n->next)
        all.push_back(n->what);
    return all;
}

} // namespace

TEST_SUITE_BEGIN("device_inbox");

TEST_CASE("the first message after a rest schedules a turn, the others do not")
{
    device_inbox inbox;
    inbox_node a(kind::request), b(kind::release), c(kind::cancel);
    CHECK(inbox.push(a));
    CHECK_FALSE(inbox.push(b));
    CHECK_FALSE(inbox.empty());
    CHECK(take(inbox) == std::vector{kind::request, kind::release});
    CHECK(inbox.empty());
    CHECK_FALSE(inbox.push(c));
    CHECK_FALSE(inbox.rest());
    CHECK(take(inbox) == std::vector{kind::cancel});
    CHECK(inbox.rest());
    CHECK(inbox.push(a));
}

TEST_CASE("any number of wake-ups is one message")
{
    device_inbox inbox;
    CHECK(inbox.wake());
    CHECK_FALSE(inbox.wake());
    CHECK_FALSE(inbox.wake());
    CHECK(take(inbox) == std::vector{kind::wake});
    // The turn has not come to the message yet, and it will still look after it.
    CHECK_FALSE(inbox.wake());
    inbox.woken();
    CHECK_FALSE(inbox.wake());
    CHECK(take(inbox) == std::vector{kind::wake});
    inbox.woken();
    CHECK(inbox.rest());
    CHECK(inbox.wake());
}

TEST_CASE("the end of the last handle is a message")
{
    device_inbox inbox;
    CHECK(inbox.drop_handle());
    CHECK_FALSE(inbox.wake());
    CHECK(take(inbox) == std::vector{kind::handle_dropped, kind::wake});
}

TEST_CASE("a closed inbox schedules nothing, and its messages can still be taken")
{
    device_inbox inbox;
    CHECK_FALSE(inbox.closed());
    inbox.close();
    CHECK(inbox.closed());
    inbox_node a(kind::request);
    CHECK_FALSE(inbox.push(a));
    CHECK_FALSE(inbox.wake());
    CHECK_FALSE(inbox.drop_handle());
    CHECK(take(inbox) == std::vector{kind::request, kind::wake, kind::handle_dropped});
}

TEST_SUITE_END();

} // namespace test_device_device_inbox
