#include "posix/fork_detector.hpp"
#include "serve/batcher_core_messages.hpp"
#include "serve/later.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::detail {
namespace {

batch_rules rules_of(const serve::batcher_options& o, std::vector<std::uint32_t> sizes, std::uint32_t places)
{
    batch_rules r;
    r.name = o.name;
    r.max_rows = o.max_rows;
    r.sizes = std::move(sizes);
    r.preferred = o.preferred;
    std::ranges::sort(r.preferred);
    r.max_delay = o.max_delay;
    r.delay = o.delay;
    r.max_padding = o.max_padding;
    r.max_in_flight = places;
    r.max_queued = o.max_queued;
    r.max_waiting = o.max_waiting;
    r.order = o.order;
    return r;
}

} // namespace

batcher_ptr batcher_core::make(asio::any_io_executor ex, const serve::batcher_options& options,
                               std::vector<std::uint32_t> sizes, std::unique_ptr<batch_runner> runner)
{
    auto core = std::make_shared<batcher_core>(std::move(ex), options, std::move(sizes), std::move(runner));
    core->self_ = std::make_unique<self_reference>(core);
    core->enlist(core->executor());
    if (!core->runner_->prepares())
        core->phase_ = phase::open;
    return core;
}

batcher_core::batcher_core(asio::any_io_executor ex, const serve::batcher_options& options,
                           std::vector<std::uint32_t> sizes, std::unique_ptr<batch_runner> runner)
    : executor_(std::move(ex)), options_(options), former_(rules_of(options, std::move(sizes), runner->places())),
      runner_(std::move(runner)), completions_(context_of(executor())), budget_(options.restart), forks_(fork_count()),
      trace_(options.trace, options.name)
{}

batcher_core::~batcher_core()
{
    withdraw();
    cancellable_.clear();
    running_deadlines_.clear();
    async_op_list orphans;
    empty_inbox(orphans);
}

void batcher_core::push(batch_message& m)
{
    if (inbox_.push(m))
        schedule();
}

void batcher_core::submit(batch_request& r)
{
    if (inbox_.closed())
        return r.destroy();
    push(r);
}

void batcher_core::submit(batch_control& r)
{
    if (inbox_.closed())
        return r.destroy();
    push(r);
}

void batcher_core::cancel(std::uint64_t cancel_id, asio::cancellation_type type)
{
    push(*new cancel_message(cancel_id, ending_of(type)));
}

void batcher_core::handle_dropped() noexcept
{
    if (inbox_.drop_handle())
        schedule();
}

void batcher_core::wake() noexcept
{
    if (inbox_.wake())
        schedule();
}

void batcher_core::schedule()
{
    // Devices on other execution contexts end batches while that of the batcher may be destroyed.
    const std::scoped_lock lock(schedule_mutex_);
    if (inbox_.closed())
        return;
    executor_.post_turn(turn_function{shared_from_this()});
}

void batcher_core::post_runner()
{
    executor_.post_runner(runner_function{shared_from_this()});
}

completion_queue::share batcher_core::turn()
{
    inbox_node* node = inbox_.take();
    // Read after the inbox: an expired timer has left a node there, and is not set again for a time in the past.
    now_ = clock::now();
    while (node) {
        inbox_node* next = node->next;
        handle(*node);
        node = next;
    }
    // After the messages: the copy of a batch can have ended before the fork.
    if (fork_count() != forks_)
        end_lost();
    expire();
    end_overdue();
    form();
    advance_stop();
    publish();
    hold_work();
    const bool again = phase_ != phase::stopped && !executor_.wait_until(next_time(), now_, *this);
    const auto mine = completions_.end_turn(turn_caller::executor, [this] { post_runner(); });
    if (again || !inbox_.rest())
        schedule();
    return mine;
}

batcher_core::clock::time_point batcher_core::next_time() const noexcept
{
    auto at = former_.wake_at(now_);
    if (!running_deadlines_.empty())
        at = std::min(at, running_deadlines_.begin()->options.deadline);
    if (resume_at_ > now_ && former_.queued() > 0)
        at = std::min(at, resume_at_);
    if (options_.run_limit.count() > 0)
        for (const batch_run* run : running_)
            if (!run->ended)
                return std::min(at, later(run->started, options_.run_limit));
    return at;
}

void batcher_core::handle(inbox_node& node)
{
    switch (node.what) {
    case inbox_node::kind::wake: return inbox_.woken();
    case inbox_node::kind::handle_dropped: return stop(false);
    default: break;
    }
    auto& m = static_cast<batch_message&>(node);
    switch (m.meaning) {
    case batch_message::type::request: return on_request(static_cast<batch_request&>(m));
    case batch_message::type::control: return on_control(static_cast<batch_control&>(m));
    case batch_message::type::cancel: {
        const std::unique_ptr<cancel_message> n(static_cast<cancel_message*>(&m));
        return on_cancel(n->id, n->why);
    }
    case batch_message::type::ended: return on_ended(static_cast<batch_run&>(m));
    case batch_message::type::runner: return runner_->handle(m);
    }
}

void batcher_core::on_request(batch_request& r)
{
    error_code ec = r.refused;
    if (!ec && (phase_ == phase::failed || phase_ == phase::stopping || phase_ == phase::stopped))
        ec = stopped_error();
    if (!ec && r.options.priority > priority::high)
        ec = not_enumerated(options_.name, "priority", static_cast<unsigned>(r.options.priority), "priority");
    if (!ec && r.rows > options_.max_rows)
        ec = op_error(errc::length_mismatch, options_.name,
                      {"the request has ", r.rows, " rows; a batch has at most ", options_.max_rows});
    if (!ec)
        ec = former_.offer(r, now_);
    if (ec) {
        r.ec = ec;
        r.arrived = now_;
        trace_.answered(r, nullptr, ec, now_);
        counters_.answered(ec, false);
        return completions_.add(r);
    }
    ++pending_;
    cancellable_.add(r);
}

void batcher_core::on_cancel(std::uint64_t cancel_id, ending why)
{
    if (batch_request* r = cancellable_.find(cancel_id)) {
        if (r->run) {
            // A started request can no longer be without effect.
            if (why != ending::total)
                give_up(*r, asio::error::operation_aborted);
            return;
        }
        former_.remove(*r);
        return complete(*r, nullptr, asio::error::operation_aborted);
    }
    const auto found = std::ranges::find(controls_, cancel_id, &batch_control::cancel_id);
    if (found == controls_.end())
        return;
    batch_control& c = **found;
    controls_.erase(found);
    c.ec = asio::error::operation_aborted;
    completions_.add(c);
}

/// The request no longer waits for the end of its batch, which goes on without it. It is answered at once, or, if a
/// copy on another thread has begun, when that has ended.
void batcher_core::give_up(batch_request& r, const error_code& why) noexcept
{
    batch_run& run = *r.run;
    if (run.uses_members && !runner_->leave(run, r.index)) {
        if (r.by_deadline.is_linked())
            running_deadlines_.erase(deadline_set::s_iterator_to(r));
        if (r.ec)
            return;
        r.ec = why;
        ++run.given_up;
        --run.left;
        return;
    }
    // Otherwise the copy, which may begin at any time, has been told.
    if (!run.uses_members)
        run.members[r.index] = nullptr;
    detach(r);
    complete(r, &run, why);
    // Its end is a message as always: callers of this function look at the running batches.
    if (--run.left == 0 && run.uses_members && runner_->withdraw(run))
        push(run);
}

void batcher_core::answer_given_up(batch_run& run) noexcept
{
    for (batch_request*& place : run.members)
        if (place && place->ec) {
            batch_request& member = *std::exchange(place, nullptr);
            detach(member);
            complete(member, &run, error_code(member.ec));
        }
    run.given_up = 0;
}

void batcher_core::detach(batch_request& r) noexcept
{
    r.run = nullptr;
    if (r.by_deadline.is_linked())
        running_deadlines_.erase(deadline_set::s_iterator_to(r));
}

/// `run`: the batch in which it was; null: it has not been in one.
void batcher_core::complete(batch_request& r, const batch_run* run, const error_code& ec) noexcept
{
    trace_.answered(r, run, ec, now_);
    --pending_;
    cancellable_.remove(r);
    counters_.answered(ec, true);
    r.ec = ec;
    completions_.add(r);
}

void batcher_core::expire()
{
    while (batch_request* r = former_.expired(now_))
        complete(*r, nullptr,
                 op_error(errc::deadline_exceeded, options_.name, {"the request was still waiting for its batch"}));
    while (!running_deadlines_.empty() && running_deadlines_.begin()->options.deadline <= now_) {
        give_up(*running_deadlines_.begin(),
                op_error(errc::deadline_exceeded, options_.name, {"the batch of the request has not ended"}));
    }
}

void batcher_core::end_overdue()
{
    if (options_.run_limit.count() == 0)
        return;
    std::erase_if(running_, [this](batch_run* run) {
        if (run->ended || later(run->started, options_.run_limit) > now_)
            return false;
        run->overdue = true;
        const auto ec = op_error(errc::deadline_exceeded, options_.name, {"a batch took longer than run_limit"});
        for (batch_request* member : run->members)
            if (member) {
                detach(*member);
                complete(*member, run, ec);
            }
        run->members.clear();
        // Not with the error in the batch, which its call may be writing.
        trace_.ended(*run, ec, now_);
        former_.ended();
        runner_->cancel(*run);
        on_failure(ec);
        return true;
    });
    deliver_ended();
}

void batcher_core::form()
{
    if (phase_ != phase::open && phase_ != phase::stopping)
        return;
    if (former_.queued() == 0)
        return;
    if (const auto ec = runner_->broken())
        return answer_waiting(ec);
    if (now_ < resume_at_)
        return;
    while (former_.next(now_, members_, [this](std::uint64_t shape) { return runner_->has_room(shape); }))
        begin(members_.front()->shape);
    // The last device may have failed in the meantime; then nothing would end the wait.
    if (former_.queued() > 0 && running_.empty())
        if (const auto ec = runner_->broken())
            answer_waiting(ec);
}

void batcher_core::begin(std::uint64_t shape)
{
    std::uint32_t rows = 0;
    std::uint32_t index = 0;
    for (batch_request* member : members_) {
        member->row = rows;
        member->index = index++;
        rows += member->rows;
    }
    batch_run& run = runner_->make(shape, rows);
    running_.push_back(&run);
    run.shape = shape;
    run.rows = rows;
    run.requests = static_cast<std::uint32_t>(members_.size());
    run.sequence = ++formed_;
    run.formed = now_;
    run.ec = {};
    run.ended = run.overdue = run.uses_members = run.delivered = false;
    run.given_up = 0;
    run.left = run.requests;
    run.started = {};
    run.outcomes.clear();
    trace_.formed(run);
    // Both keep their memory.
    run.members.swap(members_);
    members_.clear();
    // Requests that have arrived in one turn have the same time.
    auto arrived = run.members.front()->arrived;
    std::uint64_t together = 0;
    for (batch_request* member : run.members) {
        member->run = &run;
        if (member->options.deadline != exec_options::no_deadline)
            running_deadlines_.insert(*member);
        if (member->arrived != arrived) {
            counters_.queue_time.observe(now_ - arrived, together);
            arrived = member->arrived;
            together = 0;
        }
        ++together;
    }
    counters_.queue_time.observe(now_ - arrived, together);
    runner_->run(run);
    if (!run.uses_members)
        note_started(run);
    counters_.sizes.observe(rows);
    batcher_counters::add(counters_.batches);
    batcher_counters::add(counters_.rows, rows);
    batcher_counters::add(counters_.padding, run.size - rows);
}

/// The inputs have been collected, and the batch runs.
void batcher_core::note_started(batch_run& run) noexcept
{
    run.started = clock::now();
    counters_.form_time.observe(run.started - run.formed);
}

void batcher_core::on_ended(batch_run& run)
{
    if (run.overdue)
        return runner_->recycle(run);
    if (!run.uses_members)
        run.ran = now_;
    run.uses_members = false;
    if (run.given_up > 0)
        answer_given_up(run);
    if (runner_->goes_on(run)) {
        if (run.started == clock::time_point())
            note_started(run);
        return;
    }
    end(run);
}

/// In a forked child: the threads that were to copy are in the parent process.
void batcher_core::end_lost()
{
    forks_ = fork_count();
    // The end of one may remove others from the list.
    for (;;) {
        const auto lost =
            std::ranges::find_if(running_, [this](batch_run* run) { return run->uses_members && runner_->lost(*run); });
        if (lost == running_.end())
            return;
        batch_run& run = **lost;
        run.uses_members = false;
        run.outcomes.clear();
        run.ec =
            op_error(errc::context_lost, options_.name, {"the batch was being copied when the process was forked"});
        if (run.given_up > 0)
            answer_given_up(run);
        end(run);
    }
}

void batcher_core::end(batch_run& run)
{
    former_.ended();
    run.ended = true;
    if (!run.ec && run.outcomes.empty()) {
        // Not if all members had given up before it could run.
        if (run.started != clock::time_point()) {
            former_.measured(run.shape, run.size, run.ran - run.started);
            counters_.run_time.observe(run.ran - run.started);
        }
    } else if (const auto failure = runner_->failure_of(run)) {
        on_failure(failure);
    }
    if (options_.order == serve::completion_order::arrival)
        return deliver_ended();
    running_.remove(&run);
    put_back(run);
    deliver(run);
}

/// Members that can be in another batch wait again.
void batcher_core::put_back(batch_run& run)
{
    if (!run.ec && run.outcomes.empty())
        return;
    for (std::size_t i = 0; i < run.members.size(); ++i) {
        batch_request* const member = run.members[i];
        if (!member || !run.outcome(i) || !runner_->can_move(run, i))
            continue;
        run.members[i] = nullptr;
        detach(*member);
        ++member->moves;
        former_.put_back(*member);
    }
}

void batcher_core::deliver_ended()
{
    while (!running_.empty() && running_.front()->ended) {
        batch_run& run = *running_.front();
        running_.pop_front();
        deliver(run);
    }
}

void batcher_core::deliver(batch_run& run)
{
    if (!run.delivered)
        runner_->deliver(run);
    for (std::size_t i = 0; i < run.members.size(); ++i)
        if (batch_request* const member = run.members[i]) {
            detach(*member);
            complete(*member, &run, run.outcome(i));
        }
    run.members.clear();
    const auto failed = std::ranges::find_if(run.outcomes, [](const error_code& ec) { return ec.failed(); });
    trace_.ended(run, failed == run.outcomes.end() ? run.ec : *failed, now_);
    runner_->recycle(run);
}

/// Keeps the executor running while requests are pending, which are no outstanding work themselves. Completed ones need
/// none: their handlers are called by this function of the executor, or by one that has been posted.
void batcher_core::hold_work()
{
    const bool needed = pending_ > 0;
    if (needed == executor_.has(device_executor::work::requests))
        return;
    if (needed)
        executor_.begin(device_executor::work::requests);
    else
        executor_.end(device_executor::work::requests);
}

void batcher_core::publish() noexcept
{
    for (std::size_t p = 0; p < priority_count; ++p)
        counters_.queued[p].store(former_.queued(static_cast<priority>(p)), std::memory_order_relaxed);
    counters_.in_flight.store(running_.size(), std::memory_order_relaxed);
}

} // namespace coaccel::detail
