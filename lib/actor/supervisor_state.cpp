#include "actor/restart_text.hpp"

#include <coaccel/core/error.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <actor/supervisor_state.hpp>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

namespace coaccel::detail {

using clock = std::chrono::steady_clock;

namespace {

unsigned next_number() noexcept
{
    static std::atomic<unsigned> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

} // namespace

supervisor_state::supervisor_state(asio::any_io_executor ex, const restart_policy& policy,
                                   std::vector<std::shared_ptr<supervised>> children)
    : executor_(std::move(ex)), strand_(asio::make_strand(executor_.get())), policy_(policy),
      children_(std::move(children)), number_(next_number()), chance_(std::random_device{}()),
      child_count_(children_.size())
{
    enlist(executor_.get());
}

supervisor_state::~supervisor_state()
{
    withdraw();
}

void supervisor_state::add(std::shared_ptr<supervised> c)
{
    children_.push_back(std::move(c));
    ++child_count_;
}

supervisor_stats supervisor_state::stats() const noexcept
{
    supervisor_stats s;
    s.children = child_count_;
    s.failures = child_failures_;
    s.restarts = restarts_;
    s.escalations = escalations_;
    const std::lock_guard lock(mutex_);
    s.running = running_ && !shut_down_;
    return s;
}

template <class Fn>
void supervisor_state::enqueue(Fn fn)
{
    asio::post(strand_.get(), [self = shared_from_this(), fn = std::move(fn)]() mutable { fn(*self); });
}

void supervisor_state::run(async_op_base& op)
{
    std::unique_lock lock(mutex_);
    if (shut_down_ || running_) {
        const bool orphan = shut_down_;
        lock.unlock();
        op.ec = errc::already_waiting;
        return orphan ? op.destroy() : op.post();
    }
    running_ = used_ = true;
    runs_.add(op);
    enqueue([](supervisor_state& s) { s.begin(nullptr); });
}

void supervisor_state::stop(async_op_base& op)
{
    std::unique_lock lock(mutex_);
    if (shut_down_ || !running_) {
        const bool orphan = shut_down_;
        lock.unlock();
        return orphan ? op.destroy() : op.post();
    }
    stops_.add(op);
    enqueue([](supervisor_state& s) { s.end_all({}); });
}

void supervisor_state::cancel_run(async_op_base& op)
{
    std::lock_guard lock(mutex_);
    if (!shut_down_ && op.waiting())
        enqueue([](supervisor_state& s) { s.end_all(asio::error::operation_aborted); });
}

void supervisor_state::cancel_stop(async_op_base& op)
{
    {
        std::lock_guard lock(mutex_);
        if (shut_down_ || !op.waiting())
            return;
        stops_.remove(op);
        op.ec = asio::error::operation_aborted;
    }
    op.post();
}

void supervisor_state::start_below(child_listener listener)
{
    {
        std::lock_guard lock(mutex_);
        if (shut_down_)
            return;
        if (!running_) {
            running_ = used_ = true;
            enqueue([l = std::move(listener)](supervisor_state& s) mutable { s.begin(std::move(l)); });
            return;
        }
    }
    // It already runs without a parent, so this incarnation ends before it began.
    listener(child_event::failed, errc::already_waiting);
    listener(child_event::stopped, errc::already_waiting);
}

void supervisor_state::resume_below()
{
    std::lock_guard lock(mutex_);
    if (!shut_down_ && running_)
        enqueue([](supervisor_state& s) {
            if (s.machine_)
                s.apply(s.machine_->resume());
        });
}

void supervisor_state::request_stop(error_code reason)
{
    std::lock_guard lock(mutex_);
    if (!shut_down_ && running_)
        enqueue([reason](supervisor_state& s) { s.end_all(reason); });
}

void supervisor_state::retire_below(error_code reason)
{
    std::lock_guard lock(mutex_);
    if (!shut_down_)
        enqueue([reason](supervisor_state& s) {
            if (!s.machine_)
                s.retire_all(reason);
        });
}

void supervisor_state::abandon()
{
    request_stop({});
    // A running supervisor retires its children when they have stopped.
    std::lock_guard lock(mutex_);
    if (!shut_down_ && !used_)
        enqueue([](supervisor_state& s) { s.retire_all({}); });
}

void supervisor_state::shutdown(async_op_list& out) noexcept
{
    std::lock_guard lock(mutex_);
    shut_down_ = true;
    runs_.move_all(out);
    stops_.move_all(out);
    timer_.reset();
    strand_.let_go(out);
    executor_.let_go(out);
}

void supervisor_state::begin(child_listener parent)
{
    parent_ = std::move(parent);
    outcome_ = {};
    incarnations_.resize(children_.size());
    failures_.assign(children_.size(), {});
    machine_.emplace(policy_, children_.size());
    timer_.emplace(executor_.get());
    apply(machine_->start(), starts::first);
}

void supervisor_state::on_event(std::size_t index, std::uint64_t incarnation, child_event event, error_code ec)
{
    if (!machine_ || incarnations_[index] != incarnation)
        return;
    if (event == child_event::stopped)
        return apply(machine_->child_stopped(index, clock::now()));
    failures_[index] = ec;
    ++child_failures_;
    const double random = static_cast<double>(chance_() - chance_.min()) /
                          (static_cast<double>(chance_.max()) - static_cast<double>(chance_.min()) + 1.0);
    const auto step = machine_->child_failed(index, ec, clock::now(), random);
    if (log_enabled(log_level::warning))
        tell(log_level::warning, index, " failed: ", ec, next_text(step));
    apply(step);
}

void supervisor_state::end_all(error_code reason)
{
    if (!machine_)
        return;
    if (!outcome_)
        outcome_ = reason;
    apply(machine_->stop());
}

void supervisor_state::apply(const supervision_step& step, starts which)
{
    if (which == starts::again)
        restarts_ += step.start.size();
    for (const std::size_t index : step.stop)
        children_[index]->stop();
    for (const std::size_t index : step.start)
        start_child(index);
    for (const std::size_t index : step.resume) {
        failures_[index] = {};
        children_[index]->resume();
    }
    for (const std::size_t index : step.retire)
        retire_child(index, {});
    if (step.finished)
        return finish();
    arm_timer();
    escalations_ += step.escalate ? 1 : 0;
    if (step.escalate && parent_)
        parent_(child_event::failed, *step.escalate);
    else if (step.escalate)
        end_all(*step.escalate);
}

void supervisor_state::start_child(std::size_t index)
{
    failures_[index] = {};
    const std::uint64_t incarnation = ++incarnations_[index];
    // Weak: a child may keep its listener, and the supervisor owns the child.
    children_[index]->start([weak = weak_from_this(), index, incarnation](child_event event, error_code ec) {
        if (auto self = weak.lock()) {
            std::lock_guard lock(self->mutex_);
            if (!self->shut_down_)
                self->enqueue([=](supervisor_state& s) { s.on_event(index, incarnation, event, ec); });
        }
    });
}

void supervisor_state::retire_all(error_code reason)
{
    failures_.resize(children_.size());
    for (std::size_t index = 0; index < children_.size(); ++index)
        retire_child(index, reason);
}

void supervisor_state::retire_child(std::size_t index, error_code reason)
{
    const error_code failure = std::exchange(failures_[index], {});
    if (failure)
        tell(log_level::error, index, " has ended for good: ", failure);
    children_[index]->retire(failure ? failure : reason);
}

void supervisor_state::tell(log_level level, std::size_t index, const char* what, error_code ec,
                            const std::string& next) const
{
    if (log_enabled(level))
        log(level,
            "supervisor " + std::to_string(number_) + ": child " + std::to_string(index) + what + ec.message() + next);
}

std::string supervisor_state::next_text(const supervision_step& step) const
{
    if (step.used_up)
        return used_up_text(policy_);
    if (step.restarts == 0)
        return {};
    return restart_text(step.restarts, static_cast<std::size_t>(policy_.max_restarts));
}

void supervisor_state::arm_timer()
{
    const auto due = machine_->next_due().value_or(clock::time_point::max());
    timer_->expires_at(due);
    timer_->async_wait(asio::bind_executor(strand_.get(), [self = shared_from_this()](error_code ec) {
        if (!ec && self->machine_)
            self->apply(self->machine_->timer(clock::now()));
    }));
}

void supervisor_state::finish()
{
    machine_.reset();
    timer_.reset();
    auto parent = std::exchange(parent_, nullptr);
    // Before the end is reported. A parent supervisor may start the children again.
    if (!parent)
        retire_all(outcome_);
    async_op_list ended;
    async_op_list stopped;
    {
        std::lock_guard lock(mutex_);
        running_ = false;
        runs_.move_all(ended);
        stops_.move_all(stopped);
    }
    ended.fail_all(outcome_);
    ended.post_all();
    stopped.post_all();
    if (parent)
        parent(child_event::stopped, outcome_);
}

} // namespace coaccel::detail
