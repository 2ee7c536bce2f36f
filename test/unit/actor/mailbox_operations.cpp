#include "mailbox_support.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The operations of a mailbox follow the rules of Asio.
namespace test_actor_mailbox_operations {

using namespace coaccel;
using test::make;
using test::outcome_probe;
using test::put;

TEST_SUITE_BEGIN("mailbox");

TEST_CASE("a receive never completes inside the initiating call")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 2);
    CHECK_FALSE(put(box, 7));
    int got = 0;
    box.async_receive([&](error_code ec, int m) {
        CHECK_FALSE(ec);
        got = m;
    });
    CHECK(got == 0);
    ctx.run();
    CHECK(got == 7);
}

TEST_CASE("a send never completes inside the initiating call")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 1);
    outcome_probe sent;
    box.async_send(1, sent.handler());
    CHECK(sent.calls == 0);
    CHECK(box.size() == 1);
    ctx.run();
    CHECK(sent.calls == 1);
    CHECK_FALSE(*sent.ec);
}

TEST_CASE("a waiting receive is not completed inside the send that feeds it")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 1);
    outcome_probe received;
    box.async_receive(received.handler());
    ctx.poll();
    CHECK_FALSE(put(box, 1));
    CHECK(received.calls == 0);
    ctx.restart();
    ctx.poll();
    CHECK(received.calls == 1);
}

TEST_CASE("each cancellation type withdraws a waiting send without trace")
{
    for (auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        asio::io_context ctx;
        auto box = make<std::shared_ptr<int>>(ctx, 1);
        CHECK_FALSE(box.try_send(std::make_shared<int>(0)));
        auto message = std::make_shared<int>(1);
        std::weak_ptr<int> trace = message;
        asio::cancellation_signal signal;
        outcome_probe sent;
        box.async_send(std::move(message), asio::bind_cancellation_slot(signal.slot(), sent.handler()));
        ctx.poll();
        signal.emit(type);
        CHECK(sent.calls == 0);
        ctx.restart();
        ctx.run();
        CHECK(*sent.ec == asio::error::operation_aborted);
        CHECK(trace.expired());
        CHECK(*box.try_receive().value() == 0);
        CHECK_FALSE(box.try_send(std::make_shared<int>(2)));
        signal.emit(type);
    }
}

TEST_CASE("each cancellation type ends a waiting receive without trace")
{
    for (auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        asio::io_context ctx;
        auto box = make<int>(ctx, 1);
        asio::cancellation_signal signal;
        outcome_probe received;
        box.async_receive(asio::bind_cancellation_slot(signal.slot(), received.handler()));
        signal.emit(type);
        ctx.run();
        CHECK(*received.ec == asio::error::operation_aborted);
        CHECK_FALSE(put(box, 4));
        CHECK(box.try_receive().value() == 4);
        outcome_probe again;
        box.async_receive(again.handler());
        CHECK_FALSE(put(box, 5));
        ctx.restart();
        ctx.run();
        CHECK_FALSE(*again.ec);
    }
}

TEST_CASE("cancelling a receive that has its message does nothing")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 1);
    asio::cancellation_signal signal;
    outcome_probe received;
    box.async_receive(asio::bind_cancellation_slot(signal.slot(), received.handler()));
    CHECK_FALSE(put(box, 4));
    signal.emit(asio::cancellation_type::all);
    ctx.run();
    CHECK_FALSE(*received.ec);
}

TEST_CASE("the handler runs on its associated executor")
{
    asio::io_context ctx;
    asio::io_context other;
    auto box = make<int>(ctx, 1);
    bool right = false;
    box.async_receive(asio::bind_executor(
        other.get_executor(), [&](error_code, int) { right = other.get_executor().running_in_this_thread(); }));
    CHECK_FALSE(put(box, 1));
    ctx.poll();
    CHECK_FALSE(right);
    other.run();
    CHECK(right);
}

TEST_CASE("a pending operation counts as work on both executors")
{
    asio::io_context ctx;
    asio::io_context other;
    auto box = make<int>(ctx, 1);
    outcome_probe received;
    box.async_receive(asio::bind_executor(other.get_executor(), received.handler()));
    ctx.poll();
    other.poll();
    CHECK_FALSE(ctx.stopped());
    CHECK_FALSE(other.stopped());
    CHECK_FALSE(put(box, 1));
    other.run();
    ctx.poll();
    CHECK(ctx.stopped());
    CHECK(received.calls == 1);
}

TEST_CASE("memory comes from the handler's allocator and is returned before the handler runs")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 1);
    test::allocation_count count;
    test::counting_allocator<char> alloc(&count);
    std::ptrdiff_t live = -1;
    box.async_receive(asio::bind_allocator(alloc, [&](error_code, int) { live = count.live; }));
    CHECK(count.live > 0);
    CHECK_FALSE(put(box, 1));
    ctx.run();
    CHECK(live == 0);

    live = -1;
    CHECK_FALSE(put(box, 1));
    box.async_send(2, asio::bind_allocator(alloc, [&](error_code) { live = count.live; }));
    CHECK(count.live > 0);
    CHECK(box.try_receive().value() == 1);
    ctx.restart();
    ctx.run();
    CHECK(live == 0);
}

TEST_CASE("a handler may start the next operation")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 4);
    int sum = 0;
    struct loop {
        mailbox<int>& box;
        int& sum;
        void operator()(error_code ec, int m)
        {
            if (ec)
                return;
            sum += m;
            box.async_receive(loop{box, sum});
        }
    };
    box.async_receive(loop{box, sum});
    for (int i = 1; i <= 4; ++i)
        CHECK_FALSE(put(box, i));
    ctx.poll();
    box.close();
    ctx.restart();
    ctx.run();
    CHECK(sum == 10);
}

TEST_CASE("every kind of token works")
{
    asio::io_context ctx;
    auto box = make<std::string>(ctx, 4);
    auto ping = [](mailbox<std::string>& b) -> asio::awaitable<int> {
        std::string text = "a rather long string that needs the heap";
        auto sent = co_await b.async_send(std::move(text));
        CHECK(sent.has_value());
        co_await b.async_send("two", asio::use_awaitable);
        auto [ec] = co_await b.async_send("three", asio::as_tuple(asio::use_awaitable));
        CHECK_FALSE(ec);
        auto first = co_await b.async_receive();
        CHECK(first.value().size() == 40);
        std::string second = co_await b.async_receive(asio::use_awaitable);
        CHECK(second == "two");
        std::vector<std::string> rest;
        auto n = co_await b.async_receive_batch(rest, 4);
        CHECK(n.value() == 1);
        co_return 1;
    };
    auto done = asio::co_spawn(ctx, ping(box), asio::use_future);
    ctx.run();
    CHECK(done.get() == 1);

    bool erased = false;
    asio::any_completion_handler<void(error_code)> any([&](error_code) { erased = true; });
    box.async_send("four", std::move(any));
    CHECK_FALSE(erased);
    ctx.restart();
    ctx.run();
    CHECK(erased);
}

TEST_SUITE_END();

} // namespace test_actor_mailbox_operations
