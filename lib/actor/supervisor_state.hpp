#ifndef COACCEL_ACTOR_SUPERVISOR_STATE_HPP
#define COACCEL_ACTOR_SUPERVISOR_STATE_HPP

#include <coaccel/actor/restart_policy.hpp>
#include <coaccel/actor/supervised.hpp>
#include <coaccel/actor/supervision.hpp>
#include <coaccel/actor/supervisor_stats.hpp>
#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/core/log.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace coaccel::detail {

/// Drives `supervision`: supplies events, time and random numbers, and carries out its steps on a strand.
class supervisor_state final : public shutdown_hook, public std::enable_shared_from_this<supervisor_state> {
public:
    supervisor_state(asio::any_io_executor ex, const restart_policy& policy,
                     std::vector<std::shared_ptr<supervised>> children);
    ~supervisor_state();

    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }
    void add(std::shared_ptr<supervised> c);
    supervisor_stats stats() const noexcept;

    void run(async_op_base& op);
    void stop(async_op_base& op);
    void cancel_run(async_op_base& op);
    void cancel_stop(async_op_base& op);

    void start_below(child_listener listener);
    void resume_below();
    void request_stop(error_code reason);
    void retire_below(error_code reason);

    /// Called when the owner is destroyed.
    void abandon();

    void shutdown(async_op_list& out) noexcept override;

private:
    template <class Fn>
    void enqueue(Fn fn);

    // The functions below run on the strand.
    void begin(child_listener parent);
    void on_event(std::size_t index, std::uint64_t incarnation, child_event event, error_code ec);
    void end_all(error_code reason);
    /// Whether children are started because the run begins, or again after a failure.
    enum class starts : std::uint8_t { first, again };
    void apply(const supervision_step& step, starts which = starts::again);
    void start_child(std::size_t index);
    void retire_all(error_code reason);
    void retire_child(std::size_t index, error_code reason);
    void tell(log_level level, std::size_t index, const char* what, error_code ec, const std::string& next = {}) const;
    std::string next_text(const supervision_step& step) const;
    void arm_timer();
    void finish();

    held_executor executor_;
    held_executor strand_;
    const restart_policy policy_;
    std::vector<std::shared_ptr<supervised>> children_;
    std::vector<std::uint64_t> incarnations_;
    // The last failure of each child, unless it was resumed or started again since.
    std::vector<error_code> failures_;
    std::optional<supervision> machine_;
    child_listener parent_;
    error_code outcome_;
    const unsigned number_;
    std::minstd_rand chance_;

    // Read by any thread.
    std::atomic<std::uint64_t> child_count_;
    std::atomic<std::uint64_t> child_failures_{0};
    std::atomic<std::uint64_t> restarts_{0};
    std::atomic<std::uint64_t> escalations_{0};

    mutable std::mutex mutex_;
    wait_list runs_; // at most one
    wait_list stops_;
    // Always armed while running: its pending wait keeps this state alive and ends with the context.
    std::optional<asio::steady_timer> timer_;
    bool running_ = false;
    bool used_ = false;
    bool shut_down_ = false;
};

} // namespace coaccel::detail

#endif
