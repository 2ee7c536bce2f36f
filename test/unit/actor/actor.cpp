#include "support.hpp"

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/ask.hpp>
#include <coaccel/actor/supervisor.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

namespace test_actor_actor {

using namespace coaccel;
using namespace std::chrono_literals;
using test::outcome_probe;

namespace {

enum class order { add, fail, raise, hang };

struct command {
    order what = order::add;
    int value = 0;
    reply_to<int> answer;
};

// Adds up the numbers it receives; a new incarnation starts from zero.
class adder {
public:
    explicit adder(std::shared_ptr<std::atomic<int>> born) : born_(std::move(born)) { ++*born_; }

    asio::awaitable<error_code> operator()(command c)
    {
        switch (c.what) {
        case order::fail: co_return error_code(errc::context_lost);
        case order::raise: throw std::runtime_error("raised");
        case order::hang: {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
            break;
        }
        case order::add: break;
        }
        total_ += c.value;
        c.answer.send(total_);
        co_return error_code();
    }

private:
    std::shared_ptr<std::atomic<int>> born_;
    int total_ = 0;
};

directive resume_always(const error_code&) noexcept
{
    return directive::resume;
}

struct stage {
    asio::io_context ctx;
    std::shared_ptr<std::atomic<int>> born = std::make_shared<std::atomic<int>>(0);
    std::shared_ptr<actor<command>> who;
    std::shared_ptr<supervisor> boss;
    outcome_probe run;

    explicit stage(restart_policy p = {})
    {
        p.initial_backoff = 0ms;
        who = actor<command>::create(ctx.get_executor(), 16, [b = born] { return adder(b); }).value();
        boss = supervisor::create(ctx.get_executor(), p, {who}).value();
        boss->async_run(run.handler());
    }
};

auto telling(order what, int value)
{
    return [=](reply_to<int> to) { return command{what, value, std::move(to)}; };
}

using answers = std::vector<result<int>>;

asio::awaitable<void> converse(stage& s, std::vector<std::pair<order, int>> script, answers& out)
{
    for (const auto& [what, value] : script) {
        auto r = co_await async_ask<int>(s.who->ref(), telling(what, value), 1h);
        out.push_back(r);
    }
    s.who->close();
}

} // namespace

TEST_SUITE_BEGIN("actor");

TEST_CASE("a capacity of zero is refused")
{
    asio::io_context ctx;
    auto born = std::make_shared<std::atomic<int>>(0);
    CHECK(actor<command>::create(ctx.get_executor(), 0, [born] { return adder(born); }).error() ==
          errc::invalid_option);
}

TEST_CASE("an actor handles messages in order, and ends when its mailbox is closed and empty")
{
    stage s;
    answers got;
    asio::co_spawn(s.ctx, converse(s, {{order::add, 1}, {order::add, 2}, {order::add, 3}}, got), asio::detached);
    s.ctx.run();
    REQUIRE(got.size() == 3);
    CHECK(got[0].value() == 1);
    CHECK(got[2].value() == 6);
    CHECK_FALSE(*s.run.ec);
    CHECK(*s.born == 1);
}

TEST_CASE("a failure answers the current message with an error, and a new behaviour continues with the mailbox")
{
    for (auto how : {order::fail, order::raise}) {
        stage s;
        answers got;
        asio::co_spawn(s.ctx, converse(s, {{order::add, 5}, {how, 0}, {order::add, 7}}, got), asio::detached);
        s.ctx.run();
        REQUIRE(got.size() == 3);
        CHECK(got[0].value() == 5);
        CHECK(got[1].error() == errc::actor_failed);
        CHECK(got[2].value() == 7);
        CHECK(*s.born == 2);
        CHECK_FALSE(*s.run.ec);
    }
}

TEST_CASE("messages queued behind a failure survive the restart")
{
    stage s;
    std::vector<int> values;
    for (int i = 0; i < 4; ++i)
        async_ask<int>(s.who->ref(), telling(i == 1 ? order::fail : order::add, 1), 1h,
                       [&](error_code ec, int v) { values.push_back(ec ? -1 : v); });
    s.who->close();
    s.ctx.run();
    CHECK(values == std::vector<int>{1, -1, 1, 2});
}

TEST_CASE("resume keeps the behaviour and its state")
{
    restart_policy p;
    p.decider = &resume_always;
    stage s(p);
    answers got;
    asio::co_spawn(s.ctx, converse(s, {{order::add, 5}, {order::fail, 0}, {order::add, 7}}, got), asio::detached);
    s.ctx.run();
    REQUIRE(got.size() == 3);
    CHECK(got[2].value() == 12);
    CHECK(*s.born == 1);
}

TEST_CASE("a spent budget ends the supervisor with actor_failed after an exception")
{
    restart_policy p;
    p.max_restarts = 0;
    stage s(p);
    outcome_probe asked;
    async_ask<int>(s.who->ref(), telling(order::raise, 0), 1h, asked.handler());
    s.ctx.run();
    CHECK(*asked.ec == errc::actor_failed);
    CHECK(*s.run.ec == errc::actor_failed);
}

TEST_CASE("stop cancels the behaviour's pending operation, and its message is answered")
{
    stage s;
    outcome_probe asked;
    outcome_probe stop;
    async_ask<int>(s.who->ref(), telling(order::hang, 0), 1h, asked.handler());
    s.ctx.poll();
    CHECK(asked.calls == 0);
    s.boss->async_stop(stop.handler());
    s.ctx.restart();
    s.ctx.run();
    CHECK(*asked.ec == errc::actor_stopped);
    CHECK_FALSE(*stop.ec);
    CHECK_FALSE(*s.run.ec);
}

TEST_CASE("a factory that throws is a failure of the actor")
{
    asio::io_context ctx;
    auto born = std::make_shared<std::atomic<int>>(0);
    int tries = 0;
    auto factory = [&tries, born] {
        if (++tries < 3)
            throw std::runtime_error("not yet");
        return adder(born);
    };
    auto who = actor<command>::create(ctx.get_executor(), 4, factory).value();
    restart_policy p;
    p.initial_backoff = 0ms;
    auto boss = supervisor::create(ctx.get_executor(), p, {who}).value();
    outcome_probe run;
    boss->async_run(run.handler());
    who->close();
    ctx.run();
    CHECK(tries == 3);
    CHECK_FALSE(*run.ec);
}

TEST_CASE("destroying the context with a running actor releases everything")
{
    std::weak_ptr<std::atomic<int>> trace;
    {
        stage s;
        trace = s.born;
        outcome_probe asked;
        async_ask<int>(s.who->ref(), telling(order::hang, 0), 1h, asked.handler());
        s.ctx.poll();
    }
    CHECK(trace.expired());
}

TEST_CASE("many asks from many threads all complete while the actor keeps failing")
{
    restart_policy p;
    p.max_restarts = 1000000;
    stage s(p);
    constexpr int askers = 4;
    constexpr int each = 300;
    std::atomic<int> replies{0};
    std::atomic<int> open{askers};
    auto ask = [](stage& on, std::atomic<int>& count, std::atomic<int>& left) -> asio::awaitable<void> {
        for (int i = 0; i < each; ++i) {
            auto r = co_await async_ask<int>(on.who->ref(), telling(i % 5 ? order::add : order::fail, 1), 1h);
            if (r.has_value() == (i % 5 != 0))
                ++count;
        }
        if (--left == 0)
            on.who->close();
    };
    for (int i = 0; i < askers; ++i)
        asio::co_spawn(asio::make_strand(s.ctx), ask(s, replies, open), asio::detached);
    test::run_on_threads(s.ctx, 3);
    CHECK(replies == askers * each);
    CHECK_FALSE(*s.run.ec);
}

TEST_SUITE_END();

} // namespace test_actor_actor
