#include "device/device_core.hpp"

#include "device/device_core_nodes.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace coaccel::detail {
namespace {

std::uint32_t next_device_id() noexcept
{
    static std::atomic<std::uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

result<context_source> find_usable_source(const device_options& options, const asio::any_io_executor& ex)
{
    if (auto ec = options.check())
        return ec;
    return find_source(options, ex);
}

} // namespace

thread_local const device_core* device_core::last_here_ = nullptr;

core_ptr device_core::make(asio::any_io_executor ex, const device_options& options)
{
    auto core = std::make_shared<device_core>(std::move(ex), options);
    core->self_ = std::make_unique<self_reference>(core);
    core->enlist(core->executor());
    return core;
}

device_core::device_core(asio::any_io_executor ex, const device_options& options)
    : executor_(std::move(ex)), options_(options), identity_{next_device_id(), 0},
      supply_(executor_, find_usable_source(options, executor())),
      life_(supply_.unusable() ? restart_policy{} : options.restart), admission_(options.queue),
      durable_(identity_.device), completions_(context_of(executor())), standby_slot_(supply_.makes_standbys()),
      random_(identity_.device), trace_(options.trace, identity_.device), published_(executor())
{}

device_core::~device_core()
{
    withdraw();
    cancellable_.clear();
    admission_.forget_in_flight();
    async_op_list orphans;
    empty_inbox(orphans);
}

void device_core::push(inbox_node& node)
{
    if (inbox_.push(node))
        schedule();
}

void device_core::submit(request& r)
{
    if (inbox_.closed())
        return r.destroy();
    // An idle device needs no posted turn: on its own executor, the turn can run in the caller's thread. Not if the
    // turn would call a user function, because the caller may hold a lock.
    const auto is_users = [](const bound_op& o) { return o.info->lib == library::user; };
    const bool calls_users = std::ranges::any_of(r.ops, is_users) ||
                             (r.pool && static_cast<const run_call&>(r).plan().calls_users) ||
                             (r.graph && !r.graph->refused() && r.graph->plan()->calls_users);
    const bool here =
        r.call == request_kind::exec && supply_.blocks() && !published_.busy() && !calls_users && runs_here(executor());
    if (!inbox_.push(r))
        return;
    if (!here)
        return schedule();
    last_here_ = this;
    // Handlers found here can only be posted, so do not poll for completions.
    (void)turn(turn_caller::initiator, {});
}

void device_core::cancel(std::uint64_t cancel_id, asio::cancellation_type type)
{
    push(*new cancel_node(cancel_id, ending_of(type)));
}

void device_core::cancel_all()
{
    push(*new cancel_node(0, ending::terminal));
}

void device_core::handle_dropped() noexcept
{
    if (inbox_.drop_handle())
        schedule();
}

std::shared_ptr<buffer_owner> device_core::make_owner()
{
    return std::allocate_shared<release_node>(block_allocator<release_node>(), shared_from_this());
}

void device_core::wake() noexcept
{
    if (inbox_.wake())
        schedule();
}

void device_core::schedule()
{
    executor_.post_turn(turn_function{shared_from_this()});
}

void device_core::post_runner()
{
    executor_.post_runner(runner_function{shared_from_this()});
}

/// `patience`: how long to poll for completions that are expected soon. Returns the handlers that the executor's thread
/// must call; none for an initiator.
completion_queue::share device_core::turn(turn_caller caller, clock::duration patience)
{
    inbox_node* node = inbox_.take();
    // Read after the inbox: an expired timer has left a node there, and is not set again for a time in the past.
    now_ = clock::now();
    while (node) {
        // `handle` may destroy the node.
        inbox_node* next = node->next;
        handle(*node);
        node = next;
    }
    if (supply_.orphaned())
        lose_as_orphan();
    if (now_ >= retry_at_) {
        retry_at_ = clock::time_point::max();
        // A stopping device without work does not try again, even if a restart is due.
        advance_stop();
        follow(life_.due());
    }
    expire();
    look_for_overdue();
    end_long_isolation();
    end_long_load();
    if (dropped_plans_)
        close_dropped_plans();

    next_turn next;
    if (context_) {
        const auto generation = identity_.generation;
        next = work(patience);
        if (lost_) {
            const auto loss = *std::exchange(lost_, std::nullopt);
            on_lost(loss.why, loss.cause);
        } else if (!context_->accepting())
            life_.condemned();
        // A standby that has taken over has requests for plans on their way, perhaps.
        if (context_ && life_.running() && identity_.generation != generation)
            next.when = next_turn::kind::again;
        // The last run of one of them may have ended.
        if (dropped_plans_)
            close_dropped_plans();
        if (context_ && (can_launch() || can_advance_plans() || can_advance_durable()))
            next.when = next_turn::kind::again;
    }
    const next_turn of_standby = advance_standby();
    if (of_standby.when == next_turn::kind::again)
        next.when = next_turn::kind::again;
    next.at = std::min(next.at, of_standby.at);
    if (!context_) {
        release_without_context();
        // Without a context there is nothing to unload.
        if (!plans_.pending() && std::ranges::any_of(plans_.all(), [](const auto& p) { return p->closing; }))
            forget_plans();
    }
    if (!admission_.isolating()) {
        inquiry_.close();
        isolation_end_ = clock::time_point::max();
    }
    // Timers for runs that have ended would keep the executor running.
    if (admission_.in_flight() == 0)
        next_overdue_ = isolation_end_ = clock::time_point::max();
    load_isolation_.look(plans_.loads_suspect(now_), now_, longest_isolation(options_.context.hang_timeout));
    // Last, so that the statistics include everything done earlier in the turn.
    controls_.answer_stats([this](stats_call& call) {
        fill(call.stats);
        complete(call, {});
    });
    follow(life_.advance_replace(admission_.in_flight() > 0 || may_start() || plans_.pending() || durable_.pending() ||
                                 durable_.must_import()));
    advance_stop();
    publish();
    durable_.take_dropped(unused_);
    if (!unused_.empty())
        dispose_owners();
    // An immediate next turn checks all of these times itself.
    const bool again = next.when == next_turn::kind::again ||
                       !executor_.wait_until(std::min({next.at, admission_.first_deadline(), retry_at_, next_overdue_,
                                                       isolation_end_, load_isolation_.end()}),
                                             now_, *this);
    const auto mine = completions_.end_turn(caller, [this] { post_runner(); });
    if (again || !inbox_.rest())
        schedule();
    return mine;
}

/// The part of a turn that needs the context.
next_turn device_core::work(clock::duration patience)
{
    const context::scope here(*context_);
    if (life_.open())
        serve_side_calls();
    advance_durable();
    // A suspect that can start does not wait for plans that others need. An unload is short, and has a caller who
    // waits.
    if (admission_.isolating() && !plans_.unloads_soon())
        launch();
    advance_plans();
    launch();
    release_due();
    now_ = clock::now();
    // If requests have already completed, such as with an error, do not delay their handlers by polling.
    return context_->turn(now_, completions_.empty() ? patience : clock::duration::zero());
}

void device_core::handle(inbox_node& node)
{
    switch (node.what) {
    case inbox_node::kind::request: on_request(static_cast<request&>(node)); break;
    case inbox_node::kind::release: keep(static_cast<release_node&>(node)); break;
    case inbox_node::kind::cancel: {
        const std::unique_ptr<cancel_node> n(static_cast<cancel_node*>(&node));
        if (n->id == 0)
            on_cancel_all();
        else
            on_cancel(n->id, n->why);
        break;
    }
    case inbox_node::kind::wake:
        inbox_.woken();
        standby_woken_ = true;
        break;
    case inbox_node::kind::created: {
        const std::unique_ptr<created_node> n(static_cast<created_node*>(&node));
        on_created(*n);
        break;
    }
    case inbox_node::kind::compiled: {
        const std::unique_ptr<compiled_node> n(static_cast<compiled_node*>(&node));
        on_compiled(*n);
        break;
    }
    case inbox_node::kind::gone: {
        const std::unique_ptr<gone_node> n(static_cast<gone_node*>(&node));
        executor_.end(device_executor::work::context);
        while (async_op_base* p = n->dropped.pop_front())
            finished(static_cast<request&>(*p), errc::device_stopped);
        // With a standby, the device stops as one that has a context, so that the standby ends too.
        follow(life_.gone(has_work() || !standby_slot_.empty()));
        break;
    }
    case inbox_node::kind::standby: {
        const std::unique_ptr<standby_node> n(static_cast<standby_node*>(&node));
        on_standby(*n);
        break;
    }
    case inbox_node::kind::handle_dropped: stop(false); break;
    case inbox_node::kind::plan_dropped: {
        const auto p = std::move(static_cast<loaded_plan&>(node).self);
        p->dropped = true;
        dropped_plans_ |= !p->gone;
        break;
    }
    }
}

void device_core::keep(release_node& n)
{
    n.after = arrivals_;
    if (releases_.full())
        releases_.set_capacity(2 * releases_.capacity());
    releases_.push_back(std::move(n.self));
}

void device_core::publish()
{
    published_.set({life_.state(), identity_.generation, life_.reason()}, admission_.in_flight() > 0);
}

void device_core::empty_inbox(async_op_list& orphans) noexcept
{
    for (inbox_node* node = inbox_.take(); node;) {
        inbox_node* next = node->next;
        switch (node->what) {
        case inbox_node::kind::request: orphans.push_back(static_cast<request&>(*node)); break;
        case inbox_node::kind::cancel: delete static_cast<cancel_node*>(node); break;
        case inbox_node::kind::created: delete static_cast<created_node*>(node); break;
        case inbox_node::kind::compiled: delete static_cast<compiled_node*>(node); break;
        case inbox_node::kind::gone: {
            const std::unique_ptr<gone_node> n(static_cast<gone_node*>(node));
            orphans.append(n->dropped);
            break;
        }
        case inbox_node::kind::standby: {
            const std::unique_ptr<standby_node> n(static_cast<standby_node*>(node));
            orphans.append(n->dropped);
            break;
        }
        case inbox_node::kind::release: keep(static_cast<release_node&>(*node)); break;
        case inbox_node::kind::plan_dropped: static_cast<loaded_plan*>(node)->self.reset(); break;
        case inbox_node::kind::wake:
        case inbox_node::kind::handle_dropped: break;
        }
        node = next;
    }
}

void device_core::shutdown(async_op_list& out) noexcept
{
    inbox_.close();
    executor_.release_work();
    for (auto* c : {&context_, &standby_}) {
        if (*c && supply_.orphaned())
            c->release()->disown(out);
        if (*c)
            (*c)->drop(out);
        // Callers have adopted memory in the current context only.
        if (c == &context_ && *c)
            last_owners_ = (*c)->take_owners();
        c->reset();
    }
    cancellable_.clear();
    admission_.forget_in_flight();
    while (request* r = admission_.pop())
        out.push_back(*r);
    controls_.take_all(out);
    completions_.take_all(out);
    take_side_calls(out);
    take_plan_calls(out);
    while (durable_call* r = durable_.first_call()) {
        (void)durable_.remove(*r);
        out.push_back(*r);
    }
    durable_.clear();
    empty_inbox(out);
    executor_.let_go(out);
    // Not destroyed here, under the lock of the execution context's list, but together with `out`.
    if (auto self = weak_from_this().lock()) {
        self_.reset();
        out.push_back(*new self_reference(std::move(self)));
    }
}

} // namespace coaccel::detail
