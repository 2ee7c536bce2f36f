#include "support.hpp"

#include <coaccel/actor/ask.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

namespace test_actor_ask {

using namespace coaccel;
using namespace std::chrono_literals;

namespace {

struct question {
    int value = 0;
    reply_to<int> answer;
};

auto asking(int value)
{
    return [value](reply_to<int> to) { return question{value, std::move(to)}; };
}

struct reply {
    std::optional<error_code> ec;
    int value = -1;
    int calls = 0;

    auto handler()
    {
        return [this](error_code e, int v) {
            ec = e;
            value = v;
            ++calls;
        };
    }
};

mailbox<question> make(asio::io_context& ctx, std::size_t capacity)
{
    return mailbox<question>::create(ctx.get_executor(), capacity).value();
}

} // namespace

TEST_SUITE_BEGIN("ask");

TEST_CASE("the answer reaches the asker, but not inside the answering call")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    reply r;
    async_ask<int>(box.ref(), asking(20), 1h, r.handler());
    auto q = box.try_receive();
    CHECK(q.value().answer.wanted());
    q.value().answer.send(q.value().value * 2);
    CHECK(r.calls == 0);
    ctx.run();
    CHECK(r.calls == 1);
    CHECK_FALSE(*r.ec);
    CHECK(r.value == 40);
}

TEST_CASE("a reply dropped unanswered is errc::no_reply")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    reply r;
    async_ask<int>(box.ref(), asking(1), 1h, r.handler());
    CHECK(box.try_receive().has_value());
    ctx.run();
    CHECK(*r.ec == errc::no_reply);
}

TEST_CASE("an exception of the message factory completes the ask once with no_reply")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    for (const bool keeps : {false, true}) {
        reply r;
        reply_to<int> kept;
        const auto throwing = [&](reply_to<int> to) -> question {
            if (keeps)
                kept = std::move(to);
            throw 1;
        };
        CHECK_NOTHROW(async_ask<int>(box.ref(), throwing, 1h, r.handler()));
        ctx.restart();
        ctx.run();
        CHECK(r.calls == 1);
        CHECK(*r.ec == errc::no_reply);
        CHECK_FALSE(box.try_receive().has_value());
    }
}

TEST_CASE("a reply can be an error, and only the first counts")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    reply r;
    async_ask<int>(box.ref(), asking(1), 1h, r.handler());
    {
        auto q = box.try_receive();
        q.value().answer.fail(errc::invalid_argument);
        q.value().answer.send(5);
    }
    ctx.run();
    CHECK(r.calls == 1);
    CHECK(*r.ec == errc::invalid_argument);
}

TEST_CASE("a deadline in the past fails without making a message")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    reply r;
    bool made = false;
    auto make_message = [&made](reply_to<int> to) {
        made = true;
        return question{1, std::move(to)};
    };
    async_ask<int>(box.ref(), make_message, std::chrono::steady_clock::now() - 1s, r.handler());
    CHECK(r.calls == 0);
    ctx.run();
    CHECK(*r.ec == errc::deadline_exceeded);
    CHECK_FALSE(made);
    CHECK(box.size() == 0);
}

TEST_CASE("a deadline passes before the reply, and the late reply is dropped")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    reply r;
    async_ask<int>(box.ref(), asking(1), 1ms, r.handler());
    auto q = box.try_receive();
    ctx.run();
    CHECK(*r.ec == errc::deadline_exceeded);
    CHECK_FALSE(q.value().answer.wanted());
    q.value().answer.send(3);
    CHECK(r.calls == 1);
}

TEST_CASE("the deadline covers the wait for room, and the request is withdrawn")
{
    asio::io_context ctx;
    auto box = make(ctx, 1);
    question filler;
    CHECK_FALSE(box.try_send(std::move(filler)));
    reply r;
    async_ask<int>(box.ref(), asking(1), 1ms, r.handler());
    ctx.run();
    CHECK(*r.ec == errc::deadline_exceeded);
    CHECK(box.try_receive().has_value());
    CHECK(box.try_receive().error() == asio::error::would_block);
}

TEST_CASE("each cancellation type ends the ask, during the wait for room or for the answer")
{
    for (auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        asio::io_context ctx;
        auto box = make(ctx, 1);
        asio::cancellation_signal signal;
        asio::cancellation_signal signal_for_room;
        reply r;
        reply room;
        async_ask<int>(box.ref(), asking(1), 1h, asio::bind_cancellation_slot(signal.slot(), r.handler()));
        async_ask<int>(box.ref(), asking(2), 1h, asio::bind_cancellation_slot(signal_for_room.slot(), room.handler()));
        signal.emit(type);
        signal_for_room.emit(type);
        ctx.run();
        CHECK(*r.ec == asio::error::operation_aborted);
        CHECK(*room.ec == asio::error::operation_aborted);
        CHECK(box.size() == 1);
        CHECK_FALSE(box.try_receive().value().answer.wanted());
    }
}

TEST_CASE("closing and destroying a mailbox completes all asks")
{
    asio::io_context ctx;
    reply accepted;
    reply waiting;
    reply late;
    {
        auto box = make(ctx, 1);
        auto ref = box.ref();
        async_ask<int>(ref, asking(1), 1h, accepted.handler());
        async_ask<int>(ref, asking(2), 1h, waiting.handler());
        box.close();
        async_ask<int>(ref, asking(3), 1h, late.handler());
    }
    ctx.run();
    CHECK(*accepted.ec == errc::no_reply);
    CHECK(*waiting.ec == errc::closed);
    CHECK(*late.ec == errc::closed);
}

TEST_CASE("an answer may carry no value, and the default token gives a result")
{
    struct order {
        reply_to<void> done;
    };
    asio::io_context ctx;
    auto box = mailbox<order>::create(ctx.get_executor(), 1).value();
    bool finished = false;
    auto asker = [](mailbox_ref<order> to, bool& ok) -> asio::awaitable<void> {
        auto make_order = [](reply_to<void> done) { return order{std::move(done)}; };
        auto r = co_await async_ask<void>(to, make_order, std::chrono::steady_clock::duration::max());
        ok = r.has_value();
    };
    asio::co_spawn(ctx, asker(box.ref(), finished), asio::detached);
    ctx.poll();
    box.try_receive().value().done.send();
    ctx.restart();
    ctx.run();
    CHECK(finished);
}

TEST_CASE("a reply that outlives the context is harmless")
{
    std::vector<question> kept;
    auto life = std::make_shared<int>(0);
    std::weak_ptr<int> trace = life;
    {
        asio::io_context ctx;
        auto box = make(ctx, 1);
        async_ask<int>(box.ref(), asking(1), 1h, [life = std::move(life)](error_code, int) { FAIL("called"); });
        kept.push_back(box.try_receive().value());
    }
    CHECK(trace.expired());
    kept.clear();
}

TEST_CASE("every ask completes once when answers, deadlines and cancellations race")
{
    asio::io_context ctx;
    auto box = make(ctx, 4);
    constexpr int askers = 600;
    std::atomic<int> completed{0};
    std::atomic<int> answered{0};
    using count = std::atomic<int>;
    auto ask = [](mailbox<question>& to, int i, count& all, count& good) -> asio::awaitable<void> {
        const std::chrono::steady_clock::duration limit = i % 3 == 0 ? 50us : 3600000000us;
        auto r = co_await async_ask<int>(to.ref(), asking(i), limit);
        if (r) {
            CHECK(r.value() == i);
            ++good;
        }
        if (++all == askers)
            to.close();
    };
    auto serve = [](mailbox<question>& from) -> asio::awaitable<void> {
        std::vector<question> batch;
        for (;;) {
            batch.clear();
            auto n = co_await from.async_receive_batch(batch, 3);
            if (!n)
                co_return;
            for (auto& q : batch)
                if (q.value % 5 != 0)
                    q.answer.send(q.value);
        }
    };
    std::vector<std::unique_ptr<asio::cancellation_signal>> signals;
    for (int i = 0; i < askers; ++i) {
        auto strand = asio::make_strand(ctx);
        signals.push_back(std::make_unique<asio::cancellation_signal>());
        asio::co_spawn(strand, ask(box, i, completed, answered),
                       asio::bind_cancellation_slot(signals.back()->slot(), asio::detached));
        if (i % 7 == 0)
            asio::post(strand, [&s = *signals.back()] { s.emit(asio::cancellation_type::terminal); });
    }
    asio::co_spawn(asio::make_strand(ctx), serve(box), asio::detached);
    test::run_on_threads(ctx, 4);
    CHECK(completed == askers);
    CHECK(answered > 0);
}

TEST_SUITE_END();

} // namespace test_actor_ask
