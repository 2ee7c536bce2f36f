#ifndef COACCEL_SERVE_DETAIL_BATCHER_ACCESS_HPP
#define COACCEL_SERVE_DETAIL_BATCHER_ACCESS_HPP

#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/serve/batcher_options.hpp>
#include <coaccel/serve/batcher_stats.hpp>
#include <coaccel/serve/detail/batch_run.hpp>
#include <coaccel/serve/detail/batched_op.hpp>
#include <coaccel/telemetry/registration.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>

#include <memory>
#include <tuple>
#include <utility>

namespace coaccel::telemetry {

class registry;

} // namespace coaccel::telemetry

namespace coaccel::detail {

using batcher_ptr = std::shared_ptr<batcher_core>;

/// A call of a batcher other than a request.
class batch_control : public batch_message, public async_op_base {
public:
    enum class verb : std::uint8_t { start, drain, abandon, revive };

    explicit batch_control(verb v) noexcept : batch_message(type::control), what_to_do(v) {}

    const verb what_to_do;
    std::uint64_t cancel_id = 0;

    std::tuple<error_code> take() const noexcept { return {ec}; }

protected:
    ~batch_control() = default;
};

/// Without a batcher a call completes with errc::invalid_argument.
COACCEL_DECL void submit(const batcher_ptr& core, batch_request& r);
COACCEL_DECL void submit(const batcher_ptr& core, batch_control& r);
COACCEL_DECL void cancel_batched(const batcher_ptr& core, std::uint64_t cancel_id, asio::cancellation_type type);
/// The system executor if there is no batcher.
COACCEL_DECL const asio::any_io_executor& executor_of(const batcher_ptr& core) noexcept;
/// What was started for the batch has ended, with `run.ec`. Called from any thread.
COACCEL_DECL void ended(const batcher_ptr& core, batch_run& run) noexcept;
COACCEL_DECL batcher_ptr make_batcher(asio::any_io_executor ex, const serve::batcher_options& options,
                                      std::vector<std::uint32_t> sizes, std::unique_ptr<batch_runner> runner);
COACCEL_DECL batcher_ptr self_of(batcher_core& core) noexcept;
COACCEL_DECL telemetry::registration report(const telemetry::registry& where, const batcher_ptr& core);

class control_request : public batch_control {
public:
    using batch_control::batch_control;

protected:
    ~control_request() = default;
};

/// Shared by all copies of a batcher. After the last one, the batcher finishes what it has accepted, and stops.
class COACCEL_DECL batcher_handle {
public:
    explicit batcher_handle(batcher_ptr c) noexcept : core(std::move(c)) {}
    batcher_handle(const batcher_handle&) = delete;
    batcher_handle& operator=(const batcher_handle&) = delete;
    ~batcher_handle();

    serve::batcher_stats stats() const;
    const std::string& name() const noexcept;

    const batcher_ptr core;
};

struct batch_canceller {
    std::weak_ptr<batcher_core> core;
    std::uint64_t id;

    void operator()(asio::cancellation_type type) const
    {
        if (auto c = core.lock())
            cancel_batched(c, id, type);
    }
};

/// Makes the operation of a call, with its function in the handler's cancellation slot, and submits it.
template <class Op, class Handler, class... Args>
void submit_cancellable(const batcher_ptr& core, Handler&& handler, Args&&... args)
{
    const bool cancellable = asio::get_associated_cancellation_slot(handler).is_connected();
    Op* const r = Op::create(static_cast<Handler&&>(handler), executor_of(core), static_cast<Args&&>(args)...);
    if (cancellable) {
        r->cancel_id = next_cancel_id();
        r->on_cancel(batch_canceller{core, r->cancel_id});
    }
    submit(core, *r);
}

/// Starts a request to a batcher.
template <class Request>
struct initiate_batched {
    using executor_type = asio::any_io_executor;

    batcher_ptr core;

    executor_type get_executor() const noexcept { return executor_of(core); }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const
    {
        using op_type = batched_op<Request, std::decay_t<Handler>>;
        submit_cancellable<op_type>(core, static_cast<Handler&&>(handler), static_cast<Args&&>(args)...);
    }
};

/// Starts another call of a batcher.
template <class Request>
struct initiate_control {
    using executor_type = asio::any_io_executor;

    batcher_ptr core;

    executor_type get_executor() const noexcept { return executor_of(core); }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const
    {
        using op_type = handler_op<Request, std::decay_t<Handler>, executor_type>;
        submit_cancellable<op_type>(core, static_cast<Handler&&>(handler), static_cast<Args&&>(args)...);
    }
};

} // namespace coaccel::detail

#endif
