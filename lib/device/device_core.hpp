#ifndef COACCEL_DEVICE_DEVICE_CORE_HPP
#define COACCEL_DEVICE_DEVICE_CORE_HPP

#include "context/context.hpp"
#include "device/admission.hpp"
#include "device/cancellable_requests.hpp"
#include "device/compile_calls.hpp"
#include "device/context_supply.hpp"
#include "device/control_calls.hpp"
#include "device/device_executor.hpp"
#include "device/device_inbox.hpp"
#include "device/device_trace.hpp"
#include "device/durable_buffers.hpp"
#include "device/ending_rule.hpp"
#include "device/held_buffers.hpp"
#include "device/inquiry.hpp"
#include "device/lifecycle.hpp"
#include "device/load_isolation.hpp"
#include "device/op_statistics.hpp"
#include "device/pinned_calls.hpp"
#include "device/plan_list.hpp"
#include "device/published_status.hpp"
#include "device/refused_loads.hpp"
#include "device/standby_plans.hpp"
#include "device/standby_slot.hpp"
#include "device/turn_completions.hpp"

#include <coaccel/actor/watch.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/core/log.hpp>
#include <coaccel/device/detail/control_requests.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/device/detail/graph_requests.hpp>
#include <coaccel/device/detail/pinned_compile_requests.hpp>

#include <boost/circular_buffer.hpp>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace coaccel::detail {

/// The actor behind every copy of a `device`.
///
/// All its state is accessed only in its turns, which run one after another on the caller's executor. A turn empties
/// the inbox, advances the state machines, starts requests, polls the context for completions, and then calls the
/// handlers. Other threads of the executor may call handlers too.
class device_core final : public context_events,
                          public shutdown_hook,
                          public std::enable_shared_from_this<device_core> {
public:
    static core_ptr make(asio::any_io_executor ex, const device_options& options);

    device_core(asio::any_io_executor ex, const device_options& options);
    ~device_core();

    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }

    // Called from any thread.
    void push(inbox_node& node);
    void submit(request& r);
    void cancel(std::uint64_t cancel_id, asio::cancellation_type type);
    void cancel_all();
    void handle_dropped() noexcept;
    void drop_plan(const std::shared_ptr<loaded_plan>& p) noexcept;
    std::shared_ptr<buffer_owner> make_owner();
    device_status status() const { return published_.status(); }
    watch<device_status> watch_state() const { return published_.watch_state(); }
    watch<generation> watch_generation() const { return published_.watch_generation(); }

    // context_events
    void finished(request& r, error_code ec) noexcept override;
    void lost(error_code why, loss_cause cause) noexcept override;
    void unused(std::shared_ptr<void> owner) noexcept override;
    void wake() noexcept override;
    bool has_more() noexcept override { return !inbox_.empty() || can_launch(); }

    // shutdown_hook
    void shutdown(async_op_list& out) noexcept override;
    void on_fork() noexcept override { wake(); }

private:
    struct turn_function;
    struct runner_function;
    struct self_reference;
    struct cancel_node;
    struct created_node;
    struct compiled_node;
    struct gone_node;
    struct standby_node;
    struct release_node;

    [[nodiscard]] completion_queue::share turn(turn_caller caller, clock::duration patience);
    void schedule();
    void post_runner();
    void empty_inbox(async_op_list& orphans) noexcept;
    next_turn work(clock::duration patience);
    void handle(inbox_node& node);
    void on_request(request& r);
    void on_exec(request& r);
    void on_shutdown(shutdown_call& r);
    void on_replace(request& r);
    void on_revive(request& r);
    void on_cancel(std::uint64_t cancel_id, ending why);
    void on_cancel_all();
    void on_created(created_node& node);
    void install();
    void on_side_call(request& r);
    void on_compiled(compiled_node& node);
    void on_lost(error_code why, loss_cause cause);

    void follow(lifecycle::step step);
    /// Like `follow`, and writes to the log.
    void follow_failure(const error_code& why, lifecycle::step step);
    void log_line(log_level level, const std::string& text) const;
    void create_context();
    void close_context();
    void dispose(std::unique_ptr<context> dead);
    void dispose_owners();
    void stop(bool abandon);
    void fail_everything();
    void finish_stop();
    void on_create_failed(error_code why);
    void lose_as_orphan();
    void lose_in_flight();
    double chance();

    void keep(release_node& n);
    void release_due();
    void expire();
    bool may_start() noexcept;
    bool can_launch() noexcept { return context_->accepting() && may_start() && admission_.has_next(order()); }
    /// A suspect is alone on the device; requests for plans count as others.
    bool can_advance_plans() noexcept
    {
        return life_.open() && context_->accepting() && plans_.has_next() && !admission_.occupied() &&
               !plans_can_wait() && !(isolates_load() && (admission_.in_flight() > 0 || durable_.pending()));
    }
    /// A suspect can start, and the next request for a plan only makes one more instance of a plan that has one.
    bool plans_can_wait() noexcept
    {
        return admission_.isolating() && admission_.front() && plans_.next_is_extension() && !isolates_load();
    }
    /// A suspect plan is about to be loaded, or is being loaded: nothing else starts.
    bool isolates_load() const noexcept { return life_.open() && load_isolation_.holds(plans_.loads_suspect(now_)); }
    /// Until the replacement exists, a request for it must not overtake requests for the old context.
    admission::order order() const noexcept
    {
        return life_.open() ? admission::order::overtaking : admission::order::strict;
    }
    /// Imports go on during a replacement, because requests for the old context may wait for them.
    durable_buffers::scope durable_scope() const noexcept
    {
        return life_.open() ? durable_buffers::scope::all : durable_buffers::scope::imports;
    }
    bool can_advance_durable() const noexcept
    {
        return life_.running() && context_->accepting() && durable_.has_next(durable_scope()) &&
               !admission_.occupied() && !isolates_load();
    }
    void launch();
    void serve_side_calls();
    error_code begin_compile(compile_call& call);
    void end_side_calls(error_code ec);

    void on_load(load_call& r);
    void on_unload(unload_call& r);
    /// Submits a request for a plan to the context, or ends it at once.
    void submit_part(load_part& part, context& to);
    void on_part(load_part& part, const error_code& ec);
    void log_unload_error(const loaded_plan& p, const error_code& ec) const;
    void advance_plans();
    sharing sharing_of(const context& c) const noexcept;
    void distrust_shared();
    void log_unshared(const loaded_plan& p, const error_code& why) const;
    void close_plan(loaded_plan& p);
    void close_dropped_plans();
    void end_plan(loaded_plan& p, const error_code& ec);
    void end_load(load_call& r, const error_code& ec);
    void leave_load(loaded_plan& p, const error_code& ec);
    void end_plans(const error_code& ec);
    void end_plan_calls(const error_code& ec);
    void cancel_load(load_call& r);
    void forget_plans();
    void take_plan_calls(async_op_list& out) noexcept;
    error_code check_run(const run_call& r) const noexcept;
    static error_code is_unloaded(const loaded_plan& p) noexcept;
    void use_instance(run_call& r) const noexcept;

    void create_standby();
    void on_standby(standby_node& node);
    void on_standby_part(load_part& part, const error_code& ec);
    [[nodiscard]] next_turn advance_standby();
    next_turn turn_standby();
    [[nodiscard]] bool take_over();
    void end_standby();
    void disown_standby();
    void advance_stop();
    result<std::shared_ptr<loaded_plan>> make_graph(load_call& r);
    void release(const any_ref& buffer);
    error_code check_run(const graph_call& r) const noexcept;
    error_code refusal_of(const request& r) const noexcept;
    static void begin_run(request& r) noexcept;
    static void end_run(request& r) noexcept;

    void on_durable(durable_call& r);
    void on_trust(trust_call& r);
    void lose_states(loss_cause cause);
    void close_states();
    void refuse_suspect_plans();
    void revive_states(loaded_plan& p);
    static error_code is_suspect(const loaded_plan& p);
    void advance_durable();
    void on_durable_part(load_part& part, const error_code& ec);
    void end_durable_calls(const error_code& ec);
    void drop_durable_call(durable_call& r);
    void release_without_context();
    error_code enter_graph(std::vector<listed_op>& ops);

    void take_side_calls(async_op_list& out) noexcept;
    bool is_repeatable(const request& r) const noexcept;
    bool run_again(request& r, const error_code& ec) noexcept;
    lifecycle::step judge(const error_code& why, loss_cause cause);
    std::optional<std::size_t> judge_load(const load_isolation::lost_load& lost, const error_code& why);
    void refuse_load(loaded_plan& p, const error_code& why);
    void end_refused_loads(const content_id& content);
    error_code is_refused(const loaded_plan& p) const noexcept;
    error_code find_refused(const load_call& r) const noexcept;
    void permit_loads(const load_call& r) noexcept;
    void judge_standby_load(loss_cause cause);
    void end_long_load();
    void note_poison(loaded_plan& p);
    void quarantine(loaded_plan& p);
    static error_code is_quarantined(const loaded_plan& p) noexcept;
    void on_revive_plan(revive_plan_call& r);
    void note_started(request& r) noexcept;
    static void note_ended(const request& r, const error_code& ec) noexcept;
    void note_pace(const request& r) noexcept;
    void look_for_overdue();
    void limit_isolation() noexcept;
    void end_long_isolation();
    void give_up(request& r, ending why) noexcept;
    void count(const request& r, const error_code& ec) noexcept;
    void complete(request& r, error_code ec) noexcept;
    bool has_work() const noexcept
    {
        return !admission_.empty() || !compiles_.empty() || plans_.has_calls() || durable_.first_call();
    }
    void publish();
    void fill(device_stats& s) const;
    /// For the parts that end requests.
    auto completer() noexcept
    {
        return [this](request& r, const error_code& ec) { complete(r, ec); };
    }

    device_executor executor_;
    const device_options options_;
    /// Of the latest context; its generation is zero until there is one.
    context_identity identity_;
    context_supply supply_;
    device_inbox inbox_;

    lifecycle life_;
    admission admission_;
    cancellable_requests cancellable_;
    control_calls controls_;
    pinned_calls pinned_;
    compile_calls compiles_;
    plan_list plans_;
    held_buffers held_;
    durable_buffers durable_;
    std::uint64_t graphs_recorded_ = 0;
    /// A plan without handles may still be open.
    bool dropped_plans_ = false;
    turn_completions completions_;
    std::unique_ptr<context> context_;
    /// Loads the plans of the device before it takes over. Its events are those of `context_`: a request for a plan
    /// says to which of the two it belongs, and a loss belongs to the context whose turn it is.
    std::unique_ptr<context> standby_;
    standby_slot standby_slot_;
    standby_plans standby_plans_;
    /// The standby may have something to report.
    bool standby_woken_ = false;
    struct loss {
        error_code why;
        loss_cause cause;
    };
    std::optional<loss> lost_;
    inquiry inquiry_;
    load_isolation load_isolation_;
    refused_loads refused_loads_;
    /// The number of the plan that the standby was loading when it died; 0: none.
    std::uint64_t lost_on_standby_ = 0;
    /// The device has abandoned its context to move to the standby.
    bool moved_ = false;
    /// When to look for runs that take too long.
    clock::time_point next_overdue_ = clock::time_point::max();
    /// When to let other requests start beside the suspect on the device.
    clock::time_point isolation_end_ = clock::time_point::max();
    clock::time_point now_{};
    clock::time_point retry_at_ = clock::time_point::max();
    std::uint64_t arrivals_ = 0;
    boost::circular_buffer<std::shared_ptr<release_node>> releases_{16};
    /// Owners of memory that no op uses any more; destroyed outside the turn.
    owner_list unused_;
    /// The owners of the last context, if its execution context is being destroyed.
    std::unique_ptr<owner_list> last_owners_;
    std::minstd_rand random_;

    op_statistics statistics_;
    device_trace trace_;
    std::uint64_t plan_instances_ = 0;
    std::uint64_t reruns_ = 0;
    std::uint64_t convicted_ = 0;
    published_status published_;

    /// The device whose turn ran last on this thread; used only for comparison.
    static thread_local const device_core* last_here_;

    // Keeps the device alive until it has stopped or its execution context is destroyed.
    std::unique_ptr<self_reference> self_;
};

} // namespace coaccel::detail

#endif
