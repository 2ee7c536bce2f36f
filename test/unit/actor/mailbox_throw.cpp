#include "support.hpp"

#include <coaccel/actor/ask.hpp>
#include <coaccel/actor/mailbox.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <utility>

namespace test_actor_mailbox_throw {

using namespace coaccel;
using namespace std::chrono_literals;

namespace {

bool making_throws = false;
bool assigning_throws = false;

// The move constructor does not throw, as required of a message; the other operations may.
struct fragile {
    fragile()
    {
        if (making_throws)
            throw std::runtime_error("made");
    }
    explicit fragile(int v) : value(v) {}
    fragile(fragile&& other) noexcept : value(other.value) {}
    fragile& operator=(fragile&& other)
    {
        if (assigning_throws)
            throw std::runtime_error("assigned");
        value = other.value;
        return *this;
    }

    int value = 0;
};

static_assert(message<fragile>);

struct armed {
    explicit armed(bool& what) : flag(what) { flag = true; }
    ~armed() { flag = false; }
    bool& flag;
};

struct received {
    int calls = 0;
    error_code ec;
    int value = -1;

    auto handler()
    {
        return [this](error_code e, fragile m) {
            ++calls;
            ec = e;
            value = m.value;
        };
    }
};

mailbox<fragile> box_with_two(asio::io_context& ctx)
{
    auto box = mailbox<fragile>::create(ctx.get_executor(), 4).value();
    for (int i = 1; i <= 2; ++i) {
        fragile m(i);
        REQUIRE_FALSE(box.try_send(std::move(m)));
    }
    return box;
}

struct question {
    reply_to<fragile> answer;
};

} // namespace

TEST_SUITE_BEGIN("throwing messages");

TEST_CASE("delivery does not assign the message")
{
    asio::io_context ctx;
    auto box = box_with_two(ctx);
    const armed arm(assigning_throws);
    for (int i = 1; i <= 2; ++i) {
        received got;
        box.async_receive(got.handler());
        ctx.restart();
        CHECK_NOTHROW(ctx.poll());
        CHECK(got.calls == 1);
        CHECK_FALSE(got.ec);
        CHECK(got.value == i);
    }
}

TEST_CASE("a receive that cannot construct a default message throws, and loses neither a message nor the turn")
{
    asio::io_context ctx;
    auto box = box_with_two(ctx);
    {
        const armed arm(making_throws);
        received never;
        CHECK_THROWS_AS(box.async_receive(never.handler()), std::runtime_error);
        CHECK_NOTHROW(ctx.poll());
        CHECK(never.calls == 0);
    }
    received got;
    box.async_receive(got.handler());
    ctx.restart();
    ctx.poll();
    CHECK(got.calls == 1);
    CHECK_FALSE(got.ec);
    CHECK(got.value == 1);
}

TEST_CASE("a pending receive constructs no further message")
{
    asio::io_context ctx;
    auto box = mailbox<fragile>::create(ctx.get_executor(), 1).value();
    received got;
    box.async_receive(got.handler());
    const armed arm(making_throws);
    box.close();
    CHECK_NOTHROW(ctx.poll());
    CHECK(got.calls == 1);
    CHECK(got.ec == errc::closed);
}

TEST_CASE("an answer is neither default-constructed nor assigned before it reaches the asker")
{
    asio::io_context ctx;
    auto box = mailbox<question>::create(ctx.get_executor(), 2).value();
    received answered;
    received dropped;
    for (received* r : {&answered, &dropped})
        async_ask<fragile>(box.ref(), [](reply_to<fragile> to) { return question{std::move(to)}; }, 1h, r->handler());
    const armed arm(making_throws);
    const armed arm_too(assigning_throws);
    CHECK_NOTHROW(box.try_receive().value().answer.send(fragile(7)));
    CHECK(box.try_receive().has_value());
    CHECK_NOTHROW(ctx.poll());
    CHECK(answered.calls == 1);
    CHECK(answered.value == 7);
    CHECK(dropped.calls == 1);
    CHECK(dropped.ec == errc::no_reply);
}

TEST_SUITE_END();

} // namespace test_actor_mailbox_throw
