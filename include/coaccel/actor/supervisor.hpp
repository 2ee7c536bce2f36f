#ifndef COACCEL_ACTOR_SUPERVISOR_HPP
#define COACCEL_ACTOR_SUPERVISOR_HPP

#include <coaccel/actor/restart_policy.hpp>
#include <coaccel/actor/supervised.hpp>
#include <coaccel/actor/supervisor_stats.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel {

namespace detail {

class supervisor_state;

class end_waiter : public async_op_base {
public:
    std::tuple<error_code> take() const noexcept { return {ec}; }

protected:
    ~end_waiter() = default;
};

/// Cancelling a run stops the supervisor; cancelling a stop only ends the wait.
enum class end_kind { run, stop };

struct COACCEL_DECL cancel_end {
    std::weak_ptr<supervisor_state> state;
    end_kind kind;
    async_op_base* op;

    void operator()(asio::cancellation_type type) const;
};

class COACCEL_DECL initiate_end {
public:
    using executor_type = asio::any_io_executor;

    initiate_end(std::shared_ptr<supervisor_state> state, end_kind kind) noexcept
        : state_(std::move(state)), kind_(kind)
    {}

    executor_type get_executor() const noexcept;

    template <class Handler>
    void operator()(Handler&& handler) const
    {
        using op_type = handler_op<end_waiter, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), get_executor());
        op->on_cancel(cancel_end{state_, kind_, op});
        begin(*op);
    }

private:
    void begin(async_op_base& op) const;

    std::shared_ptr<supervisor_state> state_;
    end_kind kind_;
};

} // namespace detail

/// Starts its children (actors or other supervisors) and reacts to their failures according to a restart_policy, on a
/// strand over the user's executor.
///
/// A supervisor can itself be a child: the parent supervisor then decides about the failures it escalates. Without a
/// parent, an escalation ends it with the error. The destructor asks the children to stop.
///
/// The supervisor calls retire() on each child that it does not start again: one that the policy stops, one that ends
/// by itself, and without a parent all of them when the run ends. With a parent, the parent decides.
///
/// Exceptions: every function except get_executor() throws std::bad_alloc when there is no memory. create(), add(),
/// resume(), stop() and retire() then have no effect.
/// Lifetimes: holds its children until it is destroyed. It may outlive its execution context if its children may: other
/// supervisors may, actors must not. Operations started afterwards are destroyed without calling their handlers.
/// Thread safety: every function except add() may be called from any thread.
class COACCEL_DECL supervisor final : public supervised {
public:
    using executor_type = asio::any_io_executor;

    /// Errors: errc::invalid_option when the policy is not valid.
    static result<std::shared_ptr<supervisor>> create(executor_type ex, const restart_policy& policy,
                                                      std::vector<std::shared_ptr<supervised>> children = {});

    supervisor(const supervisor&) = delete;
    supervisor& operator=(const supervisor&) = delete;
    ~supervisor() override;

    /// Adds a child after the others; it is started with them.
    ///
    /// Preconditions: not running.
    void add(std::shared_ptr<supervised> c);

    /// Starts the children and supervises them.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: every child has ended; with the error if a failure was escalated.
    /// Executor: the handler's, or else the supervisor's.
    /// Cancellation: total, partial, terminal; the run stops the children first, then completes with operation_aborted.
    /// Errors: the escalated one, operation_aborted, errc::already_waiting when the supervisor is already running.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_run(Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_end(state_, detail::end_kind::run),
                                                             token);
    }

    /// Stops the children, last first.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: every child has ended; at once when the supervisor is not running.
    /// Executor: the handler's, or else the supervisor's.
    /// Cancellation: total, partial, terminal; ends the wait, not the stopping.
    /// Errors: operation_aborted.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_stop(Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_end(state_, detail::end_kind::stop),
                                                             token);
    }

    executor_type get_executor() const noexcept;

    /// What it has done so far. Does not throw, and may be called from any thread.
    supervisor_stats stats() const noexcept;

    void start(child_listener listener) override;
    void resume() override;
    void stop() override;
    void retire(error_code reason) override;

private:
    explicit supervisor(std::shared_ptr<detail::supervisor_state> state) noexcept;

    std::shared_ptr<detail::supervisor_state> state_;
};

} // namespace coaccel

#endif
