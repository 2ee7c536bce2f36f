#ifndef COACCEL_SERVE_BATCHER_CORE_HPP
#define COACCEL_SERVE_BATCHER_CORE_HPP

#include "device/cancellable_requests.hpp"
#include "device/device_executor.hpp"
#include "device/device_inbox.hpp"
#include "device/ending_rule.hpp"
#include "device/turn_completions.hpp"
#include "serve/batch_former.hpp"
#include "serve/batcher_counters.hpp"
#include "serve/batcher_trace.hpp"

#include <coaccel/actor/restart_budget.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/serve/detail/batcher_access.hpp>

#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace coaccel::detail {

/// The actor behind every copy of a batcher. As with a device, all its state is accessed only in its turns, which run
/// one after another on the caller's executor.
class batcher_core final : public shutdown_hook, public std::enable_shared_from_this<batcher_core> {
public:
    static batcher_ptr make(asio::any_io_executor ex, const serve::batcher_options& options,
                            std::vector<std::uint32_t> sizes, std::unique_ptr<batch_runner> runner);

    batcher_core(asio::any_io_executor ex, const serve::batcher_options& options, std::vector<std::uint32_t> sizes,
                 std::unique_ptr<batch_runner> runner);
    ~batcher_core();

    // Called from any thread.
    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }
    const std::string& name() const noexcept { return options_.name; }
    serve::batcher_stats stats() const { return counters_.snapshot(); }
    batch_runner& runner() const noexcept { return *runner_; }
    void push(batch_message& m);
    void submit(batch_request& r);
    void submit(batch_control& r);
    void cancel(std::uint64_t cancel_id, asio::cancellation_type type);
    void handle_dropped() noexcept;
    void wake() noexcept;

    // Called by the runner in a turn.

    /// The runner can run batches, or never will.
    void prepared(const error_code& ec);
    /// The members of a batch run one by one.
    void note_split() noexcept { batcher_counters::add(counters_.split); }

    // shutdown_hook
    void shutdown(async_op_list& out) noexcept override;
    void on_fork() noexcept override { wake(); }

private:
    using clock = exec_options::clock;

    enum class phase : std::uint8_t { starting, open, failed, stopping, stopped };

    struct turn_function;
    struct runner_function;
    struct self_reference;
    struct cancel_message;

    struct expires_before {
        bool operator()(const batch_request& a, const batch_request& b) const noexcept
        {
            return a.options.deadline < b.options.deadline;
        }
    };

    using deadline_set = boost::intrusive::multiset<
        batch_request, boost::intrusive::member_hook<batch_request, set_hook, &batch_request::by_deadline>,
        boost::intrusive::compare<expires_before>, boost::intrusive::constant_time_size<false>>;

    void schedule();
    void post_runner();
    [[nodiscard]] completion_queue::share turn();
    void handle(inbox_node& node);
    void on_request(batch_request& r);
    void on_control(batch_control& r);
    void on_cancel(std::uint64_t cancel_id, ending why);
    void on_ended(batch_run& run);
    void end(batch_run& run);
    void end_lost();
    void on_failure(const error_code& why);
    void stop(bool abandon);
    void advance_stop();
    void expire();
    void end_overdue();
    void form();
    void begin(std::uint64_t shape);
    void deliver_ended();
    void put_back(batch_run& run);
    void deliver(batch_run& run);
    void answer_waiting(const error_code& ec);
    void answer_running(const error_code& ec);
    void give_up(batch_request& r, const error_code& why) noexcept;
    void answer_given_up(batch_run& run) noexcept;
    void note_started(batch_run& run) noexcept;
    void detach(batch_request& r) noexcept;
    void complete(batch_request& r, const batch_run* run, const error_code& ec) noexcept;
    void complete_controls(batch_control::verb what, const error_code& ec);
    void empty_inbox(async_op_list& out) noexcept;
    void publish() noexcept;
    void hold_work();
    clock::time_point next_time() const noexcept;
    error_code stopped_error() const;

    device_executor executor_;
    const serve::batcher_options options_;
    batch_former former_;
    const std::unique_ptr<batch_runner> runner_;
    device_inbox inbox_;
    /// For the posting of turns, and the end of the execution context.
    std::mutex schedule_mutex_;
    turn_completions completions_;
    requests_by_id<batch_request> cancellable_;
    deadline_set running_deadlines_;
    /// In the order in which they were formed.
    std::list<batch_run*> running_;
    std::vector<batch_request*> members_;
    std::vector<batch_control*> controls_;
    restart_budget budget_;
    std::minstd_rand random_;
    phase phase_ = phase::starting;
    error_code reason_;
    std::uint64_t formed_ = 0;
    /// The fork count of the process in which the last turn was.
    std::uint32_t forks_;
    /// Requests that were accepted and have not been completed.
    std::uint64_t pending_ = 0;
    clock::time_point now_{};
    /// After a failure no batch starts before this time.
    clock::time_point resume_at_ = clock::time_point::min();
    batcher_counters counters_;
    batcher_trace trace_;
    // Keeps the batcher alive until it has stopped or its execution context is destroyed.
    std::unique_ptr<self_reference> self_;
};

} // namespace coaccel::detail

#endif
