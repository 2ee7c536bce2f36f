#include "mailbox_support.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

// Closing and destroying a mailbox.
namespace test_actor_mailbox_end {

using namespace coaccel;
using test::make;
using test::outcome_probe;
using test::put;

TEST_SUITE_BEGIN("mailbox");

TEST_CASE("close delivers accepted messages, then reports closed")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 2);
    CHECK_FALSE(put(box, 1));
    CHECK_FALSE(put(box, 2));
    outcome_probe refused;
    box.async_send(3, refused.handler());
    box.close();
    CHECK(put(box, 4) == errc::closed);
    CHECK_FALSE(box.is_open());
    ctx.run();
    CHECK(*refused.ec == errc::closed);

    std::vector<int> out;
    outcome_probe batch;
    box.async_receive_batch(out, 10, batch.handler());
    ctx.restart();
    ctx.run();
    CHECK_FALSE(*batch.ec);
    CHECK(out == std::vector<int>{1, 2});

    outcome_probe end;
    box.async_receive(end.handler());
    ctx.restart();
    ctx.run();
    CHECK(*end.ec == errc::closed);
    CHECK(box.try_receive().error() == errc::closed);
}

TEST_CASE("close completes a waiting receive")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 2);
    outcome_probe end;
    box.async_receive(end.handler());
    ctx.poll();
    CHECK(end.calls == 0);
    box.close();
    box.close();
    ctx.restart();
    ctx.run();
    CHECK(end.calls == 1);
    CHECK(*end.ec == errc::closed);
}

TEST_CASE("destroying a mailbox completes waiting operations, and destroys messages that were not received")
{
    asio::io_context ctx;
    auto message = std::make_shared<int>(1);
    std::weak_ptr<int> trace = message;
    outcome_probe sent;
    outcome_probe received;
    {
        auto box = make<std::shared_ptr<int>>(ctx, 1);
        auto empty = make<int>(ctx, 1);
        CHECK_FALSE(box.try_send(std::move(message)));
        box.async_send(nullptr, sent.handler());
        empty.async_receive(received.handler());
        auto moved = std::move(box);
    }
    CHECK(trace.expired());
    ctx.run();
    CHECK(*sent.ec == errc::closed);
    CHECK(*received.ec == errc::closed);
}

TEST_CASE("a ref outlives its mailbox and then reports closed")
{
    asio::io_context ctx;
    std::optional<mailbox_ref<int>> ref;
    {
        auto box = make<int>(ctx, 1);
        ref = box.ref();
    }
    CHECK(put(*ref, 1) == errc::closed);
    outcome_probe sent;
    ref->async_send(1, sent.handler());
    ctx.run();
    CHECK(*sent.ec == errc::closed);
}

TEST_CASE("a message in transit to the receiver of a destroyed mailbox is not delivered twice")
{
    asio::io_context ctx;
    outcome_probe received;
    {
        auto box = make<int>(ctx, 1);
        box.async_receive(received.handler());
        CHECK_FALSE(put(box, 1));
    }
    ctx.run();
    CHECK(*received.ec == errc::closed);
}

TEST_CASE("destroying the context releases coroutines that own the mailbox they wait on")
{
    auto life = std::make_shared<int>(0);
    std::weak_ptr<int> trace = life;
    {
        asio::io_context ctx;
        auto consumer = [](mailbox<std::shared_ptr<int>> box, std::shared_ptr<int>) -> asio::awaitable<void> {
            auto m = co_await box.async_receive();
            CHECK_FALSE(m.has_value());
        };
        auto producer = [](mailbox<std::shared_ptr<int>> box, std::shared_ptr<int> m) -> asio::awaitable<void> {
            auto copy = m;
            auto one = co_await box.async_send(std::move(copy));
            auto two = co_await box.async_send(std::move(m));
            CHECK(one.has_value() != two.has_value());
        };
        asio::co_spawn(ctx, consumer(make<std::shared_ptr<int>>(ctx, 1), life), asio::detached);
        asio::co_spawn(asio::make_strand(ctx), producer(make<std::shared_ptr<int>>(ctx, 1), std::move(life)),
                       asio::detached);
        ctx.poll();
    }
    CHECK(trace.expired());
}

TEST_CASE("a cancellation after the destruction of the context is harmless")
{
    std::optional<mailbox<int>> box;
    asio::cancellation_signal signal;
    {
        asio::io_context ctx;
        box = make<int>(ctx, 1);
        box->async_receive(asio::bind_cancellation_slot(signal.slot(), [](error_code, int) {}));
    }
    signal.emit(asio::cancellation_type::all);
    CHECK(put(*box, 1) == errc::closed);
}

TEST_SUITE_END();

} // namespace test_actor_mailbox_end
