#include "actor/watch_access.hpp"
#include "support.hpp"

#include <coaccel/actor/watch.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace test_actor_watch {

using namespace coaccel;
using test::outcome_probe;

namespace {

struct seen {
    std::optional<error_code> ec;
    std::string value;

    auto handler()
    {
        return [this](error_code e, std::string v) {
            ec = e;
            value = std::move(v);
        };
    }
};

/// An operation without a handler.
struct counted_op final : detail::async_op_base {
    void post() override { ++posted; }
    void destroy() noexcept override { ++destroyed; }

    int posted = 0;
    int destroyed = 0;
};

} // namespace

TEST_SUITE_BEGIN("watch");

TEST_CASE("a subscriber waits for values published after its subscription")
{
    asio::io_context ctx;
    watch_source<std::string> source(ctx.get_executor(), "one");
    auto w = source.subscribe();
    CHECK(w.get() == "one");
    CHECK_FALSE(w.has_changed());
    seen s;
    w.async_changed(s.handler());
    ctx.poll();
    CHECK_FALSE(s.ec);
    source.publish("two");
    CHECK_FALSE(s.ec);
    ctx.restart();
    ctx.run();
    CHECK_FALSE(*s.ec);
    CHECK(s.value == "two");
    CHECK_FALSE(w.has_changed());
}

TEST_CASE("a slow subscriber skips to the last value")
{
    asio::io_context ctx;
    watch_source<std::string> source(ctx.get_executor(), "one");
    auto w = source.subscribe();
    source.publish("two");
    seen s;
    w.async_changed(s.handler());
    source.publish("three");
    ctx.run();
    CHECK(s.value == "three");
    CHECK_FALSE(w.has_changed());
}

TEST_CASE("close still delivers an unseen last value, then reports closed")
{
    asio::io_context ctx;
    watch_source<std::string> source(ctx.get_executor(), "one");
    auto w = source.subscribe();
    source.publish("last");
    source.close();
    source.publish("too late");
    CHECK_FALSE(w.is_open());
    seen first;
    w.async_changed(first.handler());
    ctx.run();
    CHECK_FALSE(*first.ec);
    CHECK(first.value == "last");
    seen second;
    w.async_changed(second.handler());
    ctx.restart();
    ctx.run();
    CHECK(*second.ec == errc::closed);
    CHECK(second.value == "last");
}

TEST_CASE("destroying the source completes pending waits")
{
    asio::io_context ctx;
    seen s;
    {
        watch_source<std::string> source(ctx.get_executor(), "one");
        auto w = source.subscribe();
        w.async_changed(s.handler());
    }
    ctx.run();
    CHECK(*s.ec == errc::closed);
}

TEST_CASE("a copied subscriber starts at the position of the original, then is independent")
{
    asio::io_context ctx;
    watch_source<std::string> source(ctx.get_executor(), "one");
    auto a = source.subscribe();
    source.publish("two");
    auto b = a;
    seen s;
    a.async_changed(s.handler());
    ctx.run();
    CHECK_FALSE(a.has_changed());
    CHECK(b.has_changed());
    b = a;
    CHECK_FALSE(b.has_changed());
}

TEST_CASE("a second wait on one subscriber is refused")
{
    asio::io_context ctx;
    watch_source<std::string> source(ctx.get_executor(), "one");
    auto w = source.subscribe();
    seen first;
    seen second;
    w.async_changed(first.handler());
    w.async_changed(second.handler());
    ctx.poll();
    CHECK(*second.ec == errc::already_waiting);
    CHECK_FALSE(first.ec);
    source.publish("two");
    ctx.restart();
    ctx.run();
    CHECK_FALSE(*first.ec);
}

TEST_CASE("each cancellation type ends a wait, and nothing counts as seen")
{
    for (auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        asio::io_context ctx;
        watch_source<std::string> source(ctx.get_executor(), "one");
        auto w = source.subscribe();
        asio::cancellation_signal signal;
        seen s;
        w.async_changed(asio::bind_cancellation_slot(signal.slot(), s.handler()));
        signal.emit(type);
        source.publish("two");
        ctx.run();
        CHECK(*s.ec == asio::error::operation_aborted);
        CHECK(w.has_changed());
        seen again;
        w.async_changed(again.handler());
        ctx.restart();
        ctx.run();
        CHECK(again.value == "two");
    }
}

TEST_CASE("the wait of an operation without a handler can be cancelled, and leaves nothing behind")
{
    using detail::watch_access;
    asio::io_context ctx;
    watch_source<int> source(ctx.get_executor(), 1);
    auto w = source.subscribe();
    counted_op op;
    CHECK_FALSE(watch_access::has_waiters(w));
    watch_access::cancel(w, op);
    CHECK(op.posted == 0);
    watch_access::wait(w, op);
    CHECK(watch_access::has_waiters(w));
    CHECK(watch_access::has_waiters(source.subscribe()));
    watch_access::cancel(w, op);
    CHECK(op.posted == 1);
    CHECK(op.ec == asio::error::operation_aborted);
    CHECK_FALSE(watch_access::has_waiters(w));
    watch_access::cancel(w, op);
    source.publish(2);
    CHECK(op.posted == 1);
    CHECK(op.destroyed == 0);
}

TEST_CASE("an operation without a handler that was woken is not cancelled any more")
{
    using detail::watch_access;
    asio::io_context ctx;
    watch_source<int> source(ctx.get_executor(), 1);
    auto w = source.subscribe();
    counted_op op;
    watch_access::wait(w, op);
    source.publish(2);
    watch_access::cancel(w, op);
    CHECK(op.posted == 1);
    CHECK_FALSE(op.ec);
    CHECK_FALSE(watch_access::has_waiters(w));
}

TEST_CASE("the handler's executor and allocator are used")
{
    asio::io_context ctx;
    asio::io_context other;
    watch_source<int> source(ctx.get_executor(), 1);
    auto w = source.subscribe();
    test::allocation_count count;
    std::ptrdiff_t live = -1;
    bool right = false;
    auto handler = [&](error_code, int) {
        live = count.live;
        right = other.get_executor().running_in_this_thread();
    };
    w.async_changed(asio::bind_allocator(test::counting_allocator<char>(&count),
                                         asio::bind_executor(other.get_executor(), handler)));
    ctx.poll();
    CHECK_FALSE(ctx.stopped());
    CHECK(count.live > 0);
    source.publish(2);
    other.run();
    CHECK(right);
    CHECK(live == 0);
}

TEST_CASE("destroying the context releases a coroutine that owns source and subscriber")
{
    auto life = std::make_shared<int>(0);
    std::weak_ptr<int> trace = life;
    {
        asio::io_context ctx;
        auto waits = [](watch_source<int> source, std::shared_ptr<int>) -> asio::awaitable<void> {
            auto w = source.subscribe();
            auto r = co_await w.async_changed();
            CHECK_FALSE(r.has_value());
        };
        asio::co_spawn(ctx, waits(watch_source<int>(ctx.get_executor(), 0), std::move(life)), asio::detached);
        ctx.poll();
    }
    CHECK(trace.expired());
}

TEST_CASE("many subscribers on many threads all see growing values and the last one")
{
    asio::io_context ctx;
    watch_source<int> source(ctx.get_executor(), 0);
    constexpr int last = 2000;
    std::vector<int> finals(8, 0);
    auto follow = [](watch<int> w, int& final) -> asio::awaitable<void> {
        for (;;) {
            auto v = co_await w.async_changed();
            if (!v)
                co_return;
            CHECK(v.value() > final);
            final = v.value();
        }
    };
    for (int& final : finals)
        asio::co_spawn(asio::make_strand(ctx), follow(source.subscribe(), final), asio::detached);
    std::thread publisher([&] {
        for (int i = 1; i <= last; ++i)
            source.publish(i);
        source.close();
    });
    test::run_on_threads(ctx, 3);
    publisher.join();
    for (int final : finals)
        CHECK(final == last);
}

TEST_SUITE_END();

} // namespace test_actor_watch
