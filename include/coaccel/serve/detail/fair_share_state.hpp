#ifndef COACCEL_SERVE_DETAIL_FAIR_SHARE_STATE_HPP
#define COACCEL_SERVE_DETAIL_FAIR_SHARE_STATE_HPP

#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/device/shutdown.hpp>
#include <coaccel/serve/detail/fair_request.hpp>
#include <coaccel/serve/fair_share_options.hpp>
#include <coaccel/serve/fair_share_stats.hpp>
#include <coaccel/telemetry/registration.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace coaccel::telemetry {

class registry;

} // namespace coaccel::telemetry

namespace coaccel::detail {

/// What all copies of a fair_share have in common. Thread safety: any thread.
class COACCEL_DECL fair_share_state {
public:
    virtual ~fair_share_state() = default;

    virtual void finished(const fair_turn& turn, std::chrono::nanoseconds used) noexcept = 0;
    virtual serve::fair_share_stats stats() const = 0;
    virtual const std::string& name() const noexcept = 0;
};

using fair_share_ptr = std::shared_ptr<fair_share_state>;

} // namespace coaccel::detail

namespace coaccel::serve {

/// The turn of one request. The turn ends when finish() is called or the permit is destroyed; then the next request can
/// start. Move-only.
///
/// Thread safety: one thread at a time; it may be moved to and destroyed on any thread.
class permit {
public:
    using clock = exec_options::clock; ///< The clock of `started`.

    permit() noexcept = default; ///< Of no turn.
    /// Called by fair_share.
    permit(detail::fair_share_ptr state, const detail::fair_turn& turn, clock::time_point at) noexcept
        : state_(std::move(state)), turn_(turn), started_(at)
    {}
    permit(permit&& other) noexcept = default;
    permit& operator=(permit&& other) noexcept
    {
        if (this != &other) {
            finish();
            state_ = std::move(other.state_);
            turn_ = other.turn_;
            started_ = other.started_;
        }
        return *this;
    }
    /// As finish().
    ~permit() { finish(); }

    /// Ends the turn, and charges the tenant this device time. Zero: nothing has run. A negative time counts as zero.
    /// Does nothing if the turn has ended.
    void finish(std::chrono::nanoseconds device_time) noexcept
    {
        if (auto s = std::move(state_))
            s->finished(turn_, device_time);
    }

    /// Ends the turn, and charges the tenant the time since it began.
    void finish() noexcept
    {
        if (state_)
            finish(elapsed());
    }

    /// When the turn began.
    clock::time_point started() const noexcept { return started_; }
    /// The time since then.
    std::chrono::nanoseconds elapsed() const noexcept { return clock::now() - started_; }
    /// Whether the turn has not ended.
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    detail::fair_share_ptr state_;
    detail::fair_turn turn_;
    clock::time_point started_{};
};

/// How a request waits for its turn.
struct enter_options {
    /// The wait ends at this time, with errc::deadline_exceeded. The turn may last longer.
    exec_options::clock::time_point deadline = exec_options::no_deadline;
    /// The device time that the caller expects; what was used in the end is charged anyway. Zero: the average of the
    /// tenant's earlier requests. At most an hour.
    std::chrono::nanoseconds estimate{0};
    /// `fail`: a request that cannot have its turn at once completes with errc::queue_full.
    coaccel::when_full when_full = when_full::wait;
};

} // namespace coaccel::serve

namespace coaccel::detail {

COACCEL_DECL result<fair_share_ptr> make_fair_share(asio::any_io_executor ex, const serve::fair_share_options& options);
COACCEL_DECL asio::any_io_executor executor_of(const fair_share_ptr& state) noexcept;
COACCEL_DECL telemetry::registration report(const telemetry::registry& where, const fair_share_ptr& state);

/// A request that waits for its turn, with the type of its handler erased.
class enter_op : public async_op_base, public fair_request {
public:
    enter_op(std::string who, const serve::enter_options& how) noexcept
        : tenant(std::move(who)), when_full(how.when_full)
    {
        deadline = how.deadline;
        estimate = how.estimate;
    }

    const std::string tenant;
    const coaccel::when_full when_full;
    serve::permit granted;

    std::tuple<error_code, serve::permit> take() noexcept { return {ec, std::move(granted)}; }

protected:
    ~enter_op() = default;
};

/// Waits until all turns have ended.
class stop_share_op : public async_op_base {
public:
    explicit stop_share_op(shutdown m) noexcept : mode(m) {}

    const shutdown mode;

    std::tuple<error_code> take() const noexcept { return {ec}; }

protected:
    ~stop_share_op() = default;
};

struct COACCEL_DECL cancel_in_share {
    std::weak_ptr<fair_share_state> state;
    enter_op* enter;
    stop_share_op* stop;

    void operator()(asio::cancellation_type type) const;
};

struct COACCEL_DECL initiate_enter {
    using executor_type = asio::any_io_executor;

    fair_share_ptr state;

    executor_type get_executor() const noexcept { return executor_of(state); }

    template <class Handler>
    void operator()(Handler&& handler, std::string tenant, const serve::enter_options& how) const
    {
        using op_type = handler_op<enter_op, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(static_cast<Handler&&>(handler), get_executor(), std::move(tenant), how);
        op->on_cancel(cancel_in_share{state, op, nullptr});
        begin(*op);
    }

private:
    void begin(enter_op& op) const;
};

struct COACCEL_DECL initiate_stop_share {
    using executor_type = asio::any_io_executor;

    fair_share_ptr state;

    executor_type get_executor() const noexcept { return executor_of(state); }

    template <class Handler>
    void operator()(Handler&& handler, shutdown mode) const
    {
        using op_type = handler_op<stop_share_op, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(static_cast<Handler&&>(handler), get_executor(), mode);
        op->on_cancel(cancel_in_share{state, nullptr, op});
        begin(*op);
    }

private:
    void begin(stop_share_op& op) const;
};

} // namespace coaccel::detail

#endif
