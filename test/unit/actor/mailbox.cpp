#include "support.hpp"

#include <coaccel/actor/mailbox.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

namespace test_actor_mailbox {

using namespace coaccel;
using test::outcome_probe;

namespace {

template <class M>
mailbox<M> make(asio::io_context& ctx, std::size_t capacity)
{
    return mailbox<M>::create(ctx.get_executor(), capacity).value();
}

error_code put(mailbox_ref<int> box, int value)
{
    return box.try_send(std::move(value));
}

} // namespace

TEST_SUITE_BEGIN("mailbox");

TEST_CASE("a capacity of zero or beyond the limit is an invalid option")
{
    asio::io_context ctx;
    const auto refused = mailbox<int>::create(ctx.get_executor(), 0).error();
    CHECK(refused == errc::invalid_option);
    CHECK(refused.message() == "mailbox: capacity is 0; it must be from 1 to 1073741824");
    CHECK(mailbox<int>::create(ctx.get_executor(), mailbox<int>::max_capacity + 1).error() == errc::invalid_option);
}

TEST_CASE("the capacity is exact even if it is no power of two")
{
    asio::io_context ctx;
    for (std::size_t capacity : {1, 2, 3, 5, 8, 13}) {
        auto box = make<int>(ctx, capacity);
        for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < capacity; ++i)
                CHECK_FALSE(put(box, static_cast<int>(i)));
            CHECK(put(box, 99) == errc::queue_full);
            CHECK(box.size() == capacity);
            for (std::size_t i = 0; i < capacity; ++i)
                CHECK(box.try_receive().value() == static_cast<int>(i));
            CHECK(box.try_receive().error() == asio::error::would_block);
        }
    }
}

TEST_CASE("a refused message is left untouched")
{
    asio::io_context ctx;
    auto box = make<std::unique_ptr<int>>(ctx, 1);
    auto first = std::make_unique<int>(1);
    auto second = std::make_unique<int>(2);
    CHECK_FALSE(box.try_send(std::move(first)));
    CHECK(first == nullptr);
    CHECK(box.try_send(std::move(second)) == errc::queue_full);
    CHECK(second != nullptr);
    box.close();
    CHECK(box.try_send(std::move(second)) == errc::closed);
    CHECK(second != nullptr);
}

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

TEST_CASE("waiting senders are served in order and are not overtaken")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 1);
    CHECK_FALSE(put(box, 0));
    outcome_probe one;
    outcome_probe two;
    box.async_send(1, one.handler());
    box.async_send(2, two.handler());
    CHECK(put(box, 3) == errc::queue_full);
    CHECK(box.try_receive().value() == 0);
    CHECK(put(box, 3) == errc::queue_full);
    CHECK(box.try_receive().value() == 1);
    CHECK(box.try_receive().value() == 2);
    CHECK_FALSE(put(box, 3));
    ctx.run();
    CHECK(one.calls == 1);
    CHECK(two.calls == 1);
}

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

TEST_CASE("a second receive is refused while one is pending")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 2);
    outcome_probe first;
    outcome_probe second;
    box.async_receive(first.handler());
    box.async_receive(second.handler());
    CHECK(box.try_receive().error() == errc::already_waiting);
    ctx.poll();
    CHECK(first.calls == 0);
    CHECK(*second.ec == errc::already_waiting);
    CHECK_FALSE(put(box, 1));
    ctx.restart();
    ctx.run();
    CHECK_FALSE(*first.ec);
}

TEST_CASE("a batch takes at least one and at most max messages and appends them")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 8);
    for (int i = 0; i < 5; ++i)
        CHECK_FALSE(put(box, i));
    std::vector<int> out{-1};
    std::size_t count = 0;
    box.async_receive_batch(out, 3, [&](error_code, std::size_t n) { count = n; });
    ctx.run();
    CHECK(count == 3);
    CHECK(out == std::vector<int>{-1, 0, 1, 2});
    box.async_receive_batch(out, 0, [&](error_code, std::size_t n) { count = n; });
    ctx.restart();
    ctx.run();
    CHECK(count == 1);
    CHECK(out.back() == 3);
}

TEST_CASE("messages need not be default-constructible for batches")
{
    struct sealed {
        explicit sealed(int v) : value(v) {}
        int value;
    };
    asio::io_context ctx;
    auto box = make<sealed>(ctx, 2);
    CHECK_FALSE(box.try_send(sealed(5)));
    CHECK(box.try_receive().value().value == 5);
    CHECK_FALSE(box.try_send(sealed(6)));
    std::vector<sealed> out;
    box.async_receive_batch(out, 4, [](error_code, std::size_t) {});
    ctx.run();
    CHECK(out.at(0).value == 6);
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

} // namespace test_actor_mailbox
