#include "serve/rate_buckets.hpp"
#include "serve/wake_timer.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/serve/rate_limiter.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/system_executor.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace coaccel::detail {
namespace {

using clock = exec_options::clock;

/// Rate_buckets with a mutex, a clock and operations that wait. The clock is read under the lock, so that it never
/// goes back.
///
/// Operations are posted under the lock: after shutdown() nothing may be posted.
class shared_buckets final : public rate_limiter_state,
                             public shutdown_hook,
                             public std::enable_shared_from_this<shared_buckets> {
public:
    shared_buckets(asio::any_io_executor ex, const serve::rate_limiter_options& options)
        : executor_(std::move(ex)), buckets_(options), timer_(executor_.get())
    {}

    ~shared_buckets() override { withdraw(); }

    void start() { enlist(executor_.get()); }

    asio::any_io_executor executor() const
    {
        const std::scoped_lock lock(mutex_);
        return executor_.get();
    }

    result<serve::rate_decision> decide(std::string_view tenant, std::uint64_t tokens)
    {
        const std::scoped_lock lock(mutex_);
        if (stopped_) {
            buckets_.count_refused();
            return stopped_error();
        }
        return buckets_.decide(tenant, tokens, clock::now());
    }

    void acquire(acquire_op& op)
    {
        // Destroyed after the lock is released: the handler may own the limiter.
        async_op_list unused;
        const std::scoped_lock lock(mutex_);
        if (closed_)
            return unused.push_back(op);
        const auto now = clock::now();
        op.ec = accept(op, now);
        if (op.ec || op.when_full == when_full::fail)
            return op.post();
        async_op_list ready;
        grant(now, ready);
        const bool waits = op.in_queue.is_linked();
        const bool timed = set_timer();
        if (!timed && waits)
            buckets_.remove(op, now);
        else if (waits)
            op.owner = shared_from_this();
        ready.post_all();
        // A request that does not wait is no longer ours.
        if (!timed && waits)
            throw std::bad_alloc();
    }

    void cancel(acquire_op& op)
    {
        const std::scoped_lock lock(mutex_);
        if (!op.in_queue.is_linked())
            return;
        const auto now = clock::now();
        buckets_.remove(op, now);
        async_op_list ready;
        op.ec = asio::error::operation_aborted;
        ready.push_back(op);
        // Those behind it move up.
        grant(now, ready);
        set_timer();
        ready.post_all();
    }

    void stop() override
    {
        const std::scoped_lock lock(mutex_);
        stopped_ = true;
        async_op_list ready;
        while (rate_waiter* w = buckets_.pop())
            ready.push_back(static_cast<acquire_op&>(*w));
        ready.fail_all(stopped_error());
        set_timer();
        ready.post_all();
    }

    void wake()
    {
        const std::scoped_lock lock(mutex_);
        timer_.woken();
        if (closed_)
            return;
        async_op_list ready;
        grant(clock::now(), ready);
        set_timer();
        ready.post_all();
    }

    const std::string& name() const noexcept override { return buckets_.options().name; }

    serve::rate_limiter_stats stats() const override
    {
        serve::rate_limiter_stats s;
        const std::scoped_lock lock(mutex_);
        const auto now = clock::now();
        s.all = buckets_.all();
        s.forgotten = buckets_.forgotten();
        buckets_.for_each([&](const rate_bucket& b) {
            s.tenants.push_back({*b.name, b.configured, b.counts, rate_buckets::tokens_in(b, now)});
        });
        return s;
    }

    void shutdown(async_op_list& out) noexcept override
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        while (rate_waiter* w = buckets_.pop())
            out.push_back(static_cast<acquire_op&>(*w));
        timer_.release();
        executor_.let_go(out);
    }

private:
    error_code stopped_error() const
    {
        return op_error(errc::actor_stopped, name(), {"the rate limiter has been stopped"});
    }

    error_code accept(acquire_op& op, clock::time_point now)
    {
        if (stopped_) {
            buckets_.count_refused();
            return stopped_error();
        }
        if (op.when_full == when_full::wait)
            return buckets_.offer(op, op.tenant, op.deadline, now);
        const auto d = buckets_.decide(op.tenant, op.tokens, now);
        if (!d)
            return d.error();
        if (!d.value())
            return op_error(
                errc::queue_full, name(),
                {"tenant ", op.tenant, ": the tokens are there only in ", d.value().retry_after.count(), " ns"});
        return {};
    }

    void grant(clock::time_point now, async_op_list& out) noexcept
    {
        while (rate_waiter* w = buckets_.next(now))
            out.push_back(static_cast<acquire_op&>(*w));
    }

    /// False: there is no memory for it. The next change tries again.
    bool set_timer() noexcept
    {
        try {
            timer_.wait_until(buckets_.wake_at(), *this);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    held_executor executor_;
    mutable std::mutex mutex_;
    rate_buckets buckets_;
    wake_timer timer_;
    bool stopped_ = false;
    /// The execution context is being destroyed.
    bool closed_ = false;
};

shared_buckets& real(const rate_limiter_ptr& s) noexcept
{
    return static_cast<shared_buckets&>(*s);
}

error_code is_empty_limiter() noexcept
{
    return op_error(errc::invalid_argument, "rate_limiter", {"it is empty: default-constructed or moved from"});
}

} // namespace

result<rate_limiter_ptr> make_rate_limiter(asio::any_io_executor ex, const serve::rate_limiter_options& options)
{
    if (auto ec = options.check())
        return ec;
    auto made = std::make_shared<shared_buckets>(std::move(ex), options);
    made->start();
    return rate_limiter_ptr(std::move(made));
}

result<serve::rate_decision> try_acquire(const rate_limiter_ptr& state, std::string_view tenant, std::uint64_t tokens)
{
    if (!state)
        return is_empty_limiter();
    return real(state).decide(tenant, tokens);
}

asio::any_io_executor executor_of(const rate_limiter_ptr& state) noexcept
{
    return state ? real(state).executor() : asio::any_io_executor(asio::system_executor());
}

void cancel_acquire::operator()(asio::cancellation_type type) const
{
    constexpr auto honoured =
        asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
    if ((type & honoured) == asio::cancellation_type::none)
        return;
    if (const auto s = state.lock())
        real(s).cancel(*op);
}

void initiate_acquire::begin(acquire_op& op) const
{
    if (!state) {
        op.ec = is_empty_limiter();
        return op.post();
    }
    try {
        real(state).acquire(op);
    } catch (...) {
        op.destroy();
        throw;
    }
}

} // namespace coaccel::detail
