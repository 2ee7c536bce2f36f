#include "serve/fair_queue.hpp"
#include "serve/wake_timer.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/serve/fair_share.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/system_executor.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace coaccel::detail {
namespace {

using clock = exec_options::clock;

/// A fair_queue with a mutex, a clock and operations that wait.
///
/// Nothing else keeps it alive while requests wait: they wait only while turns run, and the permits of these own it.
///
/// Operations are posted under the lock: after shutdown() nothing may be posted, and turns may end on any thread.
class shared_turns final : public fair_share_state,
                           public shutdown_hook,
                           public std::enable_shared_from_this<shared_turns> {
public:
    shared_turns(asio::any_io_executor ex, const serve::fair_share_options& options)
        : executor_(std::move(ex)), queue_(options), timer_(executor_.get())
    {}

    ~shared_turns() override { withdraw(); }

    void start() { enlist(executor_.get()); }

    asio::any_io_executor executor() const
    {
        const std::scoped_lock lock(mutex_);
        return executor_.get();
    }

    void enter(enter_op& op)
    {
        // Destroyed after the lock is released: the handler may own a permit.
        async_op_list unused;
        const std::scoped_lock lock(mutex_);
        if (closed_)
            return unused.push_back(op);
        const auto now = clock::now();
        if ((op.ec = accept(op, now)))
            return op.post();
        async_op_list ready;
        expire(now, ready);
        grant(now, ready);
        if (op.when_full == when_full::fail && op.in_queue.is_linked()) {
            queue_.remove(op, fair_queue::leaving::refused);
            op.ec = op_error(errc::queue_full, name(),
                             {"tenant ", op.tenant, " cannot have a turn at once; all tenants together have ",
                              queue_.running(), ", and max_running is ", queue_.options().max_running});
            ready.push_back(op);
        }
        const bool timed = set_timer();
        const bool waits = op.in_queue.is_linked();
        if (!timed && waits)
            queue_.remove(op, fair_queue::leaving::refused);
        ready.post_all();
        // A request that does not wait is no longer ours.
        if (!timed && waits)
            throw std::bad_alloc();
    }

    void stop(stop_share_op& op)
    {
        async_op_list unused;
        const std::scoped_lock lock(mutex_);
        if (closed_)
            return unused.push_back(op);
        stopping_ = true;
        async_op_list ready;
        if (op.mode == shutdown::abandon)
            while (fair_request* r = queue_.pop())
                end(*r, stopped_error(), ready);
        stopping_ops_.add(op);
        settle(ready);
    }

    void cancel(enter_op& op)
    {
        const std::scoped_lock lock(mutex_);
        if (!op.in_queue.is_linked())
            return;
        queue_.remove(op, fair_queue::leaving::cancelled);
        async_op_list ready;
        end(op, asio::error::operation_aborted, ready);
        settle(ready);
    }

    void cancel(stop_share_op& op)
    {
        const std::scoped_lock lock(mutex_);
        if (!op.waiting())
            return;
        stopping_ops_.remove(op);
        op.ec = asio::error::operation_aborted;
        op.post();
    }

    void finished(const fair_turn& turn, std::chrono::nanoseconds used) noexcept override
    {
        const std::scoped_lock lock(mutex_);
        queue_.finish(turn, used);
        if (!closed_)
            go_on();
    }

    void wake()
    {
        const std::scoped_lock lock(mutex_);
        timer_.woken();
        if (!closed_)
            go_on();
    }

    const std::string& name() const noexcept override { return queue_.options().name; }

    serve::fair_share_stats stats() const override
    {
        serve::fair_share_stats s;
        s.queue_time = queue_time_.snapshot();
        const std::scoped_lock lock(mutex_);
        s.all = queue_.all();
        s.forgotten = queue_.forgotten();
        queue_.for_each([&s](const fair_tenant& t) {
            s.tenants.push_back(
                {*t.name, t.configured, t.rules.weight, t.counts, std::chrono::nanoseconds(t.estimate)});
        });
        return s;
    }

    void shutdown(async_op_list& out) noexcept override
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        while (fair_request* r = queue_.pop())
            out.push_back(static_cast<enter_op&>(*r));
        stopping_ops_.move_all(out);
        timer_.release();
        executor_.let_go(out);
    }

private:
    error_code stopped_error() const
    {
        return op_error(errc::actor_stopped, name(), {"no further turns are given, because it was shut down"});
    }

    error_code accept(enter_op& op, clock::time_point now)
    {
        error_code ec;
        if (stopping_)
            ec = stopped_error();
        else if (op.estimate.count() < 0 || op.estimate > std::chrono::hours(1))
            ec = op_error(
                errc::invalid_argument, name(),
                {"tenant ", op.tenant, ": estimate is ", op.estimate.count(), " ns; it must be from 0 to an hour"});
        else
            return queue_.offer(op, op.tenant, now);
        queue_.count_refused();
        return ec;
    }

    static void end(fair_request& r, const error_code& ec, async_op_list& out) noexcept
    {
        auto& op = static_cast<enter_op&>(r);
        op.ec = ec;
        out.push_back(op);
    }

    void expire(clock::time_point now, async_op_list& out)
    {
        while (fair_request* r = queue_.expired(now))
            end(*r,
                op_error(
                    errc::deadline_exceeded, name(),
                    {"tenant ", static_cast<enter_op&>(*r).tenant, ": the request was still waiting for its turn"}),
                out);
    }

    void grant(clock::time_point now, async_op_list& out)
    {
        while (fair_request* r = queue_.next()) {
            queue_time_.observe(std::chrono::nanoseconds(now - r->arrived));
            auto& op = static_cast<enter_op&>(*r);
            op.granted = serve::permit(shared_from_this(), r->turn, now);
            out.push_back(op);
        }
    }

    void go_on()
    {
        async_op_list ready;
        if (queue_.queued() > 0) {
            const auto now = clock::now();
            expire(now, ready);
            grant(now, ready);
        }
        settle(ready);
    }

    /// The end of every change.
    void settle(async_op_list& ready)
    {
        if (stopping_ && queue_.queued() == 0 && queue_.running() == 0)
            stopping_ops_.move_all(ready);
        set_timer();
        ready.post_all();
    }

    /// False: there is no memory for it. The next change tries again.
    bool set_timer() noexcept
    {
        try {
            timer_.wait_until(queue_.wake_at(), *this);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    held_executor executor_;
    mutable std::mutex mutex_;
    fair_queue queue_;
    wake_timer timer_;
    telemetry::histogram queue_time_;
    wait_list stopping_ops_;
    bool stopping_ = false;
    /// The execution context is being destroyed.
    bool closed_ = false;
};

shared_turns& real(const fair_share_ptr& s) noexcept
{
    return static_cast<shared_turns&>(*s);
}

error_code is_empty_share() noexcept
{
    return op_error(errc::invalid_argument, "fair_share", {"it is empty: default-constructed or moved from"});
}

} // namespace

result<fair_share_ptr> make_fair_share(asio::any_io_executor ex, const serve::fair_share_options& options)
{
    if (auto ec = options.check())
        return ec;
    auto made = std::make_shared<shared_turns>(std::move(ex), options);
    made->start();
    return fair_share_ptr(std::move(made));
}

asio::any_io_executor executor_of(const fair_share_ptr& state) noexcept
{
    return state ? real(state).executor() : asio::any_io_executor(asio::system_executor());
}

void cancel_in_share::operator()(asio::cancellation_type type) const
{
    constexpr auto honoured =
        asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
    if ((type & honoured) == asio::cancellation_type::none)
        return;
    const auto s = state.lock();
    if (s && enter)
        real(s).cancel(*enter);
    else if (s)
        real(s).cancel(*stop);
}

void initiate_enter::begin(enter_op& op) const
{
    if (!state) {
        op.ec = is_empty_share();
        return op.post();
    }
    try {
        real(state).enter(op);
    } catch (...) {
        op.destroy();
        throw;
    }
}

void initiate_stop_share::begin(stop_share_op& op) const
{
    if (state)
        return real(state).stop(op);
    op.ec = is_empty_share();
    op.post();
}

} // namespace coaccel::detail
