#include "support.hpp"

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/ask.hpp>
#include <coaccel/actor/supervisor.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace test_actor_supervisor {

using namespace coaccel;
using namespace std::chrono_literals;
using test::outcome_probe;

namespace {

using journal = std::vector<std::string>;

// A child that the test controls: it records the calls it receives, and ends on stop() unless it is stubborn.
class puppet : public supervised {
public:
    puppet(std::string name, journal& log) : name_(std::move(name)), log_(log) {}

    void start(child_listener l) override
    {
        log_.push_back("start " + name_);
        listener = std::move(l);
    }

    void resume() override { log_.push_back("resume " + name_); }

    void stop() override
    {
        log_.push_back("stop " + name_);
        if (!stubborn)
            listener(child_event::stopped, {});
    }

    child_listener listener;
    bool stubborn = false;

private:
    std::string name_;
    journal& log_;
};

directive escalate_always(const error_code&) noexcept
{
    return directive::escalate;
}

directive resume_always(const error_code&) noexcept
{
    return directive::resume;
}

restart_policy policy(strategy s = strategy::one_for_one)
{
    restart_policy p;
    p.strategy = s;
    p.initial_backoff = 0ms;
    p.max_backoff = 0ms;
    return p;
}

void settle(asio::io_context& ctx)
{
    ctx.restart();
    ctx.poll();
}

struct two_puppets {
    asio::io_context ctx;
    journal log;
    std::shared_ptr<puppet> a = std::make_shared<puppet>("a", log);
    std::shared_ptr<puppet> b = std::make_shared<puppet>("b", log);
    outcome_probe run;

    std::shared_ptr<supervisor> make(const restart_policy& p)
    {
        return supervisor::create(ctx.get_executor(), p, {a, b}).value();
    }
};

} // namespace

TEST_SUITE_BEGIN("supervisor");

TEST_CASE("an invalid policy is refused")
{
    asio::io_context ctx;
    restart_policy p;
    p.max_restarts = -1;
    CHECK(supervisor::create(ctx.get_executor(), p).error() == errc::invalid_option);
}

TEST_CASE("children start in order and stop in reverse")
{
    two_puppets t;
    auto s = t.make(policy());
    s->async_run(t.run.handler());
    CHECK(t.log.empty());
    settle(t.ctx);
    CHECK(t.log == journal{"start a", "start b"});
    outcome_probe stop;
    s->async_stop(stop.handler());
    CHECK(stop.calls == 0);
    t.ctx.restart();
    t.ctx.run();
    CHECK(t.log == journal{"start a", "start b", "stop b", "stop a"});
    CHECK_FALSE(*stop.ec);
    CHECK_FALSE(*t.run.ec);
}

TEST_CASE("stop waits for slow children")
{
    two_puppets t;
    auto s = t.make(policy());
    t.b->stubborn = true;
    s->async_run(t.run.handler());
    outcome_probe stop;
    s->async_stop(stop.handler());
    settle(t.ctx);
    CHECK(t.log == journal{"start a", "start b", "stop b"});
    CHECK(stop.calls == 0);
    t.b->listener(child_event::stopped, {});
    t.ctx.restart();
    t.ctx.run();
    CHECK(stop.calls == 1);
    CHECK(t.run.calls == 1);
}

TEST_CASE("a failure restarts children by the strategy")
{
    two_puppets t;
    auto s = t.make(policy(strategy::one_for_all));
    s->async_run(t.run.handler());
    settle(t.ctx);
    t.log.clear();
    t.a->listener(child_event::failed, errc::context_lost);
    settle(t.ctx);
    CHECK(t.log == journal{"stop b", "stop a", "start a", "start b"});
    CHECK(t.run.calls == 0);
}

TEST_CASE("events of an earlier incarnation are ignored")
{
    two_puppets t;
    auto s = t.make(policy());
    s->async_run(t.run.handler());
    settle(t.ctx);
    auto old = t.a->listener;
    old(child_event::failed, errc::context_lost);
    settle(t.ctx);
    t.log.clear();
    old(child_event::failed, errc::context_lost);
    old(child_event::stopped, {});
    settle(t.ctx);
    CHECK(t.log.empty());
}

TEST_CASE("the run completes when every child has ended by itself")
{
    two_puppets t;
    auto s = t.make(policy());
    s->async_run(t.run.handler());
    settle(t.ctx);
    t.a->listener(child_event::stopped, {});
    t.b->listener(child_event::stopped, {});
    t.ctx.restart();
    t.ctx.run();
    CHECK_FALSE(*t.run.ec);
}

TEST_CASE("an escalation at the top stops the other children and completes the run with the error")
{
    two_puppets t;
    restart_policy p = policy();
    p.max_restarts = 1;
    auto s = t.make(p);
    s->async_run(t.run.handler());
    settle(t.ctx);
    t.a->listener(child_event::failed, errc::context_lost);
    settle(t.ctx);
    t.log.clear();
    t.a->listener(child_event::failed, errc::device_lost);
    t.ctx.restart();
    t.ctx.run();
    CHECK(t.log == journal{"stop b", "stop a"});
    CHECK(*t.run.ec == errc::device_lost);
}

TEST_CASE("a supervisor can run again after its end, with a fresh budget")
{
    two_puppets t;
    auto s = t.make(policy());
    for (int round = 0; round < 2; ++round) {
        outcome_probe run;
        outcome_probe stop;
        s->async_run(run.handler());
        s->async_stop(stop.handler());
        t.ctx.restart();
        t.ctx.run();
        CHECK_FALSE(*run.ec);
    }
    outcome_probe idle;
    s->async_stop(idle.handler());
    t.ctx.restart();
    t.ctx.run();
    CHECK_FALSE(*idle.ec);
}

TEST_CASE("a second run is refused")
{
    two_puppets t;
    auto s = t.make(policy());
    outcome_probe second;
    s->async_run(t.run.handler());
    s->async_run(second.handler());
    settle(t.ctx);
    CHECK(*second.ec == errc::already_waiting);
    CHECK(t.run.calls == 0);
}

TEST_CASE("cancelling the run stops the children first")
{
    for (auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        two_puppets t;
        auto s = t.make(policy());
        asio::cancellation_signal signal;
        s->async_run(asio::bind_cancellation_slot(signal.slot(), t.run.handler()));
        settle(t.ctx);
        signal.emit(type);
        t.ctx.restart();
        t.ctx.run();
        CHECK(t.log.back() == "stop a");
        CHECK(*t.run.ec == asio::error::operation_aborted);
    }
}

TEST_CASE("cancelling a stop ends only the wait")
{
    two_puppets t;
    auto s = t.make(policy());
    t.b->stubborn = true;
    asio::cancellation_signal signal;
    outcome_probe stop;
    s->async_run(t.run.handler());
    s->async_stop(asio::bind_cancellation_slot(signal.slot(), stop.handler()));
    settle(t.ctx);
    signal.emit(asio::cancellation_type::total);
    settle(t.ctx);
    CHECK(*stop.ec == asio::error::operation_aborted);
    t.b->listener(child_event::stopped, {});
    t.ctx.restart();
    t.ctx.run();
    CHECK(t.run.calls == 1);
}

TEST_CASE("destroying a supervisor asks the children to stop, and the run still completes")
{
    two_puppets t;
    auto s = t.make(policy());
    s->async_run(t.run.handler());
    settle(t.ctx);
    s.reset();
    t.ctx.restart();
    t.ctx.run();
    CHECK(t.log == journal{"start a", "start b", "stop b", "stop a"});
    CHECK(t.run.calls == 1);
}

TEST_CASE("an escalation reaches the parent, which restarts the whole sub-supervisor")
{
    two_puppets t;
    restart_policy below = policy();
    below.decider = &escalate_always;
    auto sub = t.make(below);
    auto top = supervisor::create(t.ctx.get_executor(), policy(), {sub}).value();
    top->async_run(t.run.handler());
    settle(t.ctx);
    t.log.clear();
    t.a->listener(child_event::failed, errc::context_lost);
    settle(t.ctx);
    CHECK(t.log == journal{"stop b", "stop a", "start a", "start b"});
    CHECK(t.run.calls == 0);
    outcome_probe stop;
    top->async_stop(stop.handler());
    t.ctx.restart();
    t.ctx.run();
    CHECK_FALSE(*t.run.ec);
}

TEST_CASE("a parent that resumes continues the failed child")
{
    two_puppets t;
    restart_policy below = policy();
    below.decider = &escalate_always;
    restart_policy above = policy();
    above.decider = &resume_always;
    auto top = supervisor::create(t.ctx.get_executor(), above, {t.make(below)}).value();
    top->async_run(t.run.handler());
    settle(t.ctx);
    t.log.clear();
    t.b->listener(child_event::failed, errc::context_lost);
    settle(t.ctx);
    CHECK(t.log == journal{"resume b"});
}

TEST_CASE("escalations pass through every level to the top")
{
    two_puppets t;
    restart_policy p = policy();
    p.decider = &escalate_always;
    auto middle = supervisor::create(t.ctx.get_executor(), p, {t.make(p)}).value();
    auto top = supervisor::create(t.ctx.get_executor(), p, {middle}).value();
    top->async_run(t.run.handler());
    settle(t.ctx);
    t.a->listener(child_event::failed, errc::device_lost);
    t.ctx.restart();
    t.ctx.run();
    CHECK(*t.run.ec == errc::device_lost);
    CHECK(t.log == journal{"start a", "start b", "stop b", "stop a"});
}

TEST_CASE("destroying the context of a running supervisor tree releases everything")
{
    auto life = std::make_shared<int>(0);
    std::weak_ptr<int> trace = life;
    {
        journal log;
        asio::io_context ctx;
        auto sub = supervisor::create(ctx.get_executor(), policy(), {std::make_shared<puppet>("a", log)}).value();
        auto top = supervisor::create(ctx.get_executor(), policy(), {std::move(sub)}).value();
        top->async_run([life = std::move(life), top](error_code) {});
        top.reset();
        ctx.poll();
    }
    CHECK(trace.expired());
}

TEST_SUITE_END();

} // namespace test_actor_supervisor
