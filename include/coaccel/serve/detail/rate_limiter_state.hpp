#ifndef COACCEL_SERVE_DETAIL_RATE_LIMITER_STATE_HPP
#define COACCEL_SERVE_DETAIL_RATE_LIMITER_STATE_HPP

#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/exec_options.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/serve/detail/rate_waiter.hpp>
#include <coaccel/serve/rate_limiter_options.hpp>
#include <coaccel/telemetry/registration.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace coaccel::telemetry {

class registry;

} // namespace coaccel::telemetry

namespace coaccel::detail {

/// What all copies of a rate_limiter have in common. Thread safety: any thread.
class COACCEL_DECL rate_limiter_state {
public:
    virtual ~rate_limiter_state() = default;

    virtual void stop() = 0;
    virtual serve::rate_limiter_stats stats() const = 0;
    virtual const std::string& name() const noexcept = 0;
};

using rate_limiter_ptr = std::shared_ptr<rate_limiter_state>;

COACCEL_DECL result<rate_limiter_ptr> make_rate_limiter(asio::any_io_executor ex,
                                                        const serve::rate_limiter_options& options);
COACCEL_DECL result<serve::rate_decision> try_acquire(const rate_limiter_ptr& state, std::string_view tenant,
                                                      std::uint64_t tokens);
COACCEL_DECL asio::any_io_executor executor_of(const rate_limiter_ptr& state) noexcept;
COACCEL_DECL telemetry::registration report(const telemetry::registry& where, const rate_limiter_ptr& state);

/// A request that waits for tokens, with the type of its handler erased.
class acquire_op : public async_op_base, public rate_waiter {
public:
    acquire_op(std::string who, std::uint64_t n, const exec_options& how) noexcept
        : rate_waiter(n), tenant(std::move(who)), deadline(how.deadline), when_full(how.when_full)
    {}

    const std::string tenant;
    const exec_options::clock::time_point deadline;
    const coaccel::when_full when_full;
    /// Keeps the limiter alive while the request waits for nothing but time.
    rate_limiter_ptr owner;

    std::tuple<error_code> take() noexcept
    {
        owner.reset();
        return {ec};
    }

protected:
    ~acquire_op() = default;
};

struct COACCEL_DECL cancel_acquire {
    std::weak_ptr<rate_limiter_state> state;
    acquire_op* op;

    void operator()(asio::cancellation_type type) const;
};

struct COACCEL_DECL initiate_acquire {
    using executor_type = asio::any_io_executor;

    rate_limiter_ptr state;

    executor_type get_executor() const noexcept { return executor_of(state); }

    template <class Handler>
    void operator()(Handler&& handler, std::string tenant, std::uint64_t tokens, const exec_options& how) const
    {
        using op_type = handler_op<acquire_op, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(static_cast<Handler&&>(handler), get_executor(), std::move(tenant), tokens, how);
        op->on_cancel(cancel_acquire{state, op});
        begin(*op);
    }

private:
    void begin(acquire_op& op) const;
};

} // namespace coaccel::detail

#endif
