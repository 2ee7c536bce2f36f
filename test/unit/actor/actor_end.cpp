#include "support.hpp"

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/ask.hpp>
#include <coaccel/actor/supervisor.hpp>
#include <coaccel/core/log.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace test_actor_actor_end {

using namespace coaccel;
using namespace std::chrono_literals;
using test::outcome_probe;

namespace {

constexpr auto no_deadline = std::chrono::steady_clock::time_point::max();

enum class order { add, fail, raise, raise_oddly, drop, keep, hang };

struct command {
    order what = order::add;
    reply_to<int> answer;
};

auto telling(order what)
{
    return [what](reply_to<int> to) { return command{what, std::move(to)}; };
}

class counter {
public:
    asio::awaitable<error_code> operator()(command c)
    {
        switch (c.what) {
        case order::fail: co_return error_code(errc::context_lost);
        case order::raise: throw std::runtime_error("the fan has stopped");
        case order::raise_oddly: throw 42;
        case order::keep: kept_.push_back(std::move(c.answer)); co_return error_code();
        case order::drop:
            c = {};
            co_await forever();
            break;
        case order::hang: co_await forever(); break;
        case order::add: break;
        }
        c.answer.send(++count_);
        co_return error_code();
    }

private:
    static asio::awaitable<void> forever()
    {
        asio::steady_timer never(co_await asio::this_coro::executor, no_deadline);
        co_await never.async_wait(asio::use_awaitable);
    }

    std::vector<reply_to<int>> kept_;
    int count_ = 0;
};

std::string told;

template <directive D>
directive always(const error_code& ec) noexcept
{
    told = ec.message();
    return D;
}

restart_policy policy(directive (*decider)(const error_code&) noexcept)
{
    restart_policy p;
    p.decider = decider;
    p.initial_backoff = 0ms;
    p.max_backoff = 0ms;
    return p;
}

// An actor with room for two messages, supervised by a supervisor that is itself supervised.
struct tree {
    asio::io_context ctx;
    std::shared_ptr<actor<command>> who =
        actor<command>::create(ctx.get_executor(), 2, [] { return counter(); }).value();
    std::shared_ptr<supervisor> middle;
    std::shared_ptr<supervisor> top;
    asio::cancellation_signal cancel;
    outcome_probe run;

    tree(const restart_policy& below, const restart_policy& above)
    {
        middle = supervisor::create(ctx.get_executor(), below, {who}).value();
        top = supervisor::create(ctx.get_executor(), above, {middle}).value();
        start();
    }

    void start()
    {
        top->async_run(asio::bind_cancellation_slot(cancel.slot(), run.handler()));
        settle();
    }

    void ask(order what, outcome_probe& into)
    {
        async_ask<int>(who->ref(), telling(what), no_deadline, into.handler());
    }

    void settle()
    {
        ctx.restart();
        ctx.poll();
    }
};

bool says(const outcome_probe& p, std::string_view text)
{
    REQUIRE(p.calls == 1);
    INFO("message: ", p.ec->message());
    return p.ec->message().find(text) != std::string::npos;
}

} // namespace

TEST_SUITE_BEGIN("the end of an actor");

TEST_CASE("every permanent end of an actor completes all asks, and later asks are refused at once")
{
    struct way {
        const char* name;
        directive (*below)(const error_code&) noexcept;
        directive (*above)(const error_code&) noexcept;
        void (*end)(tree&); // null: the failure itself
    };
    static constexpr way ways[] = {
        {"its policy stops it", &always<directive::stop>, &always<directive::restart>, nullptr},
        {"it escalates to the top", &always<directive::escalate>, &always<directive::escalate>, nullptr},
        {"its supervisor is stopped by the one above", &always<directive::escalate>, &always<directive::stop>, nullptr},
        {"async_stop", &always<directive::restart>, &always<directive::restart>,
         [](tree& t) { t.top->async_stop([](error_code) {}); }},
        {"the run is cancelled", &always<directive::restart>, &always<directive::restart>,
         [](tree& t) { t.cancel.emit(asio::cancellation_type::terminal); }},
        {"the supervisor is destroyed", &always<directive::restart>, &always<directive::restart>,
         [](tree& t) { t.top.reset(); }},
    };
    for (const way& w : ways) {
        INFO("ended by: ", std::string(w.name));
        tree t(policy(w.below), policy(w.above));
        outcome_probe first;
        t.ask(w.end ? order::hang : order::raise, first);
        std::array<outcome_probe, 4> queued; // two in the mailbox, two waiting for room
        if (w.end)
            t.settle();
        for (auto& q : queued)
            t.ask(order::add, q);
        if (w.end)
            w.end(t);
        t.settle();
        CHECK(t.run.calls == 1);
        CHECK(first.calls == 1);
        for (const auto& q : queued) {
            CHECK(q.calls == 1);
            CHECK((q.ec && *q.ec == errc::actor_stopped));
        }
        CHECK_FALSE(t.who->ref().is_open());
        outcome_probe late;
        t.ask(order::add, late);
        t.settle();
        REQUIRE(late.calls == 1);
        CHECK(*late.ec == errc::actor_stopped);
        CHECK(*late.ec == fault::stopped);
        command c;
        CHECK(t.who->ref().try_send(std::move(c)) == errc::actor_stopped);
    }
}

TEST_CASE("a spent budget ends an actor like an escalation, with the last failure")
{
    auto p = policy(&always<directive::restart>);
    p.max_restarts = 1;
    tree t(p, policy(&always<directive::escalate>));
    std::array<outcome_probe, 3> asked;
    for (auto& a : asked)
        t.ask(order::raise, a);
    t.settle();
    CHECK(*asked[0].ec == errc::actor_failed);
    CHECK(*asked[1].ec == errc::actor_failed);
    REQUIRE(asked[2].calls == 1);
    CHECK(*asked[2].ec == errc::actor_stopped);
    CHECK(says(asked[2], "the fan has stopped"));
    CHECK(*t.run.ec == errc::actor_failed);
    CHECK(says(t.run, "the fan has stopped"));
}

TEST_CASE("an exception or error of a behaviour reaches the asker and the decider")
{
    struct failure {
        order what;
        const char* text;
    };
    for (const failure& f :
         {failure{order::raise, "the fan has stopped"}, failure{order::raise_oddly, "not derived from std::exception"},
          failure{order::fail, "the context was lost"}}) {
        INFO("failure: ", std::string(f.text));
        told.clear();
        tree t(policy(&always<directive::resume>), {});
        outcome_probe asked;
        t.ask(f.what, asked);
        t.settle();
        CHECK(says(asked, f.text));
        CHECK(*asked.ec == errc::actor_failed);
        CHECK(told.find(f.text) != std::string::npos);
    }
}

TEST_CASE("failures and the end they lead to are logged, an orderly end is not")
{
    std::mutex mutex;
    std::string log;
    // Messages of earlier cases must not reach the new sink.
    REQUIRE(flush_log());
    set_log_sink(log_level::warning, [&](log_level level, std::string_view text) {
        const std::scoped_lock lock(mutex);
        log += (level == log_level::error ? "error: " : "warning: ") + std::string(text) + '\n';
    });
    {
        tree t(policy(&always<directive::stop>), {});
        outcome_probe asked;
        t.ask(order::raise, asked);
        t.settle();
        tree orderly({}, {});
        orderly.who->close();
        orderly.settle();
    }
    CHECK(flush_log(10s));
    set_log_sink(log_level::warning, {});
    INFO(log);
    CHECK(std::count(log.begin(), log.end(), '\n') == 2);
    CHECK(log.find("warning: supervisor ") == 0);
    CHECK(log.find("child 0 failed: the actor threw: the fan has stopped\nerror: supervisor ") != std::string::npos);
    CHECK(log.find("child 0 has ended for good: the actor threw: the fan has stopped") != std::string::npos);
}

TEST_CASE("the log counts restarts, and reports a used-up budget")
{
    std::mutex mutex;
    std::string log;
    REQUIRE(flush_log());
    set_log_sink(log_level::warning, [&](log_level, std::string_view text) {
        const std::scoped_lock lock(mutex);
        log += std::string(text) + '\n';
    });
    {
        auto below = policy(&always<directive::restart>);
        below.max_restarts = 1;
        tree t(below, policy(&always<directive::stop>));
        outcome_probe first;
        t.ask(order::raise, first);
        t.settle();
        outcome_probe second;
        t.ask(order::raise, second);
        t.settle();
    }
    CHECK(flush_log(10s));
    set_log_sink(log_level::warning, {});
    INFO(log);
    CHECK(log.find("child 0 failed: the actor threw: the fan has stopped; restart 1 of 1\n") != std::string::npos);
    CHECK(log.find("the fan has stopped; the restart budget of 1 in 60 s is used up\n") != std::string::npos);
}

TEST_CASE("an exception of a factory reaches the supervisor")
{
    asio::io_context ctx;
    const auto factory = []() -> counter { throw std::runtime_error("no fan at all"); };
    auto who = actor<command>::create(ctx.get_executor(), 2, factory).value();
    auto boss = supervisor::create(ctx.get_executor(), policy(&always<directive::escalate>), {who}).value();
    outcome_probe run;
    boss->async_run(run.handler());
    ctx.run();
    CHECK(*run.ec == errc::actor_failed);
    CHECK(says(run, "no fan at all"));
}

TEST_CASE("a reply dropped by a running behaviour is no_reply")
{
    tree t({}, {});
    outcome_probe asked;
    t.ask(order::drop, asked);
    t.settle();
    REQUIRE(asked.calls == 1);
    CHECK(*asked.ec == errc::no_reply);
}

TEST_CASE("a reply kept by the behaviour is answered with the failure that ends the behaviour")
{
    tree t(policy(&always<directive::restart>), {});
    outcome_probe kept;
    outcome_probe failed;
    outcome_probe next;
    t.ask(order::keep, kept);
    t.ask(order::raise, failed);
    t.settle();
    t.ask(order::add, next);
    t.settle();
    CHECK(says(kept, "the fan has stopped"));
    CHECK_FALSE(*next.ec);
}

TEST_CASE("the current message of a stopped actor is answered with actor_stopped")
{
    tree t({}, {});
    outcome_probe asked;
    t.ask(order::hang, asked);
    t.settle();
    CHECK(asked.calls == 0);
    t.top->async_stop([](error_code) {});
    t.settle();
    REQUIRE(asked.calls == 1);
    CHECK(*asked.ec == errc::actor_stopped);
}

TEST_CASE("a restart by the parent supervisor keeps the mailbox and its messages")
{
    tree t(policy(&always<directive::escalate>), policy(&always<directive::restart>));
    outcome_probe failed;
    outcome_probe queued;
    t.ask(order::raise, failed);
    t.ask(order::add, queued);
    t.settle();
    CHECK(*failed.ec == errc::actor_failed);
    REQUIRE(queued.calls == 1);
    CHECK_FALSE(*queued.ec);
    CHECK(t.who->ref().is_open());
}

TEST_CASE("a supervisor that runs again reopens the mailboxes of its actors")
{
    tree t({}, {});
    t.top->async_stop([](error_code) {});
    t.settle();
    REQUIRE(t.run.calls == 1);
    CHECK_FALSE(t.who->ref().is_open());
    t.start();
    outcome_probe asked;
    t.ask(order::add, asked);
    t.settle();
    REQUIRE(asked.calls == 1);
    CHECK_FALSE(*asked.ec);
}

TEST_CASE("a mailbox that its owner closed stays closed when its supervisor runs again")
{
    tree t({}, {});
    t.who->close();
    t.settle();
    REQUIRE(t.run.calls == 1);
    t.start();
    CHECK(t.run.calls == 2);
    outcome_probe asked;
    t.ask(order::add, asked);
    t.settle();
    REQUIRE(asked.calls == 1);
    CHECK(*asked.ec == errc::closed);
}

TEST_CASE("an actor whose supervisor never ran ends with the supervisor")
{
    asio::io_context ctx;
    auto who = actor<command>::create(ctx.get_executor(), 2, [] { return counter(); }).value();
    auto boss = supervisor::create(ctx.get_executor(), {}, {who}).value();
    outcome_probe asked;
    async_ask<int>(who->ref(), telling(order::add), no_deadline, asked.handler());
    boss.reset();
    ctx.poll();
    REQUIRE(asked.calls == 1);
    CHECK(*asked.ec == errc::actor_stopped);
}

TEST_SUITE_END();

} // namespace test_actor_actor_end
