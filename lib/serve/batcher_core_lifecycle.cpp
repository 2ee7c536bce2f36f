#include "serve/batcher_core_messages.hpp"
#include "serve/later.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <utility>

// The life of a batcher: preparation, failures, stop.
namespace coaccel::detail {

error_code batcher_core::stopped_error() const
{
    if (phase_ != phase::failed)
        return op_error(errc::actor_stopped, options_.name, {"the batcher has been stopped"});
    return op_error(errc::actor_stopped, options_.name, {"the batcher has failed: ", reason_.message()});
}

void batcher_core::on_control(batch_control& r)
{
    r.ec = {};
    switch (r.what_to_do) {
    case batch_control::verb::start:
        controls_.push_back(&r);
        runner_->start(*this);
        return;
    case batch_control::verb::revive:
        if (phase_ == phase::failed) {
            phase_ = phase::open;
            reason_ = {};
            budget_.reset();
            resume_at_ = now_;
        }
        if (phase_ == phase::open)
            runner_->revive();
        else if (phase_ != phase::starting)
            r.ec = stopped_error();
        return completions_.add(r);
    case batch_control::verb::drain:
    case batch_control::verb::abandon:
        controls_.push_back(&r);
        return stop(r.what_to_do == batch_control::verb::abandon);
    }
}

void batcher_core::prepared(const error_code& ec)
{
    if (phase_ == phase::starting) {
        phase_ = ec ? phase::failed : phase::open;
        reason_ = ec;
        if (ec)
            answer_waiting(ec);
    }
    complete_controls(batch_control::verb::start, ec);
}

void batcher_core::complete_controls(batch_control::verb what, const error_code& ec)
{
    std::erase_if(controls_, [&](batch_control* c) {
        if (c->what_to_do != what)
            return false;
        c->ec = ec;
        completions_.add(*c);
        return true;
    });
}

void batcher_core::on_failure(const error_code& why)
{
    if (phase_ != phase::open)
        return;
    const double chance = static_cast<double>(random_() - std::minstd_rand::min()) /
                          (static_cast<double>(std::minstd_rand::max() - std::minstd_rand::min()) + 1);
    const auto decision = budget_.on_failure(now_, why, chance);
    switch (decision.directive) {
    case directive::resume: return;
    case directive::restart:
        batcher_counters::add(counters_.restarts);
        resume_at_ = later(now_, decision.delay);
        return;
    case directive::stop:
    case directive::escalate: break;
    }
    phase_ = phase::failed;
    reason_ = why;
    answer_waiting(stopped_error());
}

void batcher_core::answer_waiting(const error_code& ec)
{
    while (batch_request* r = former_.pop())
        complete(*r, nullptr, ec);
}

void batcher_core::answer_running(const error_code& ec)
{
    for (batch_run* run : running_)
        for (batch_request* member : run->members)
            if (member)
                give_up(*member, ec);
}

void batcher_core::stop(bool abandon)
{
    if (phase_ == phase::stopped)
        return;
    // A batcher that is still preparing runs nothing any more.
    const bool useless = phase_ != phase::open && phase_ != phase::stopping;
    phase_ = phase::stopping;
    former_.close();
    complete_controls(batch_control::verb::start, stopped_error());
    if (abandon || useless)
        answer_waiting(stopped_error());
    if (abandon)
        answer_running(stopped_error());
}

void batcher_core::advance_stop()
{
    if (phase_ == phase::stopping && former_.queued() == 0 && running_.empty()) {
        phase_ = phase::stopped;
        runner_->stop();
        self_.reset();
        // Nothing needs the timer; it may be set, and keeps the executor running.
        executor_.cancel_timer();
    }
    if (phase_ != phase::stopped)
        return;
    complete_controls(batch_control::verb::drain, {});
    complete_controls(batch_control::verb::abandon, {});
}

void batcher_core::empty_inbox(async_op_list& out) noexcept
{
    for (inbox_node* node = inbox_.take(); node;) {
        inbox_node* next = node->next;
        if (node->what != inbox_node::kind::wake && node->what != inbox_node::kind::handle_dropped) {
            auto& m = static_cast<batch_message&>(*node);
            switch (m.meaning) {
            case batch_message::type::request: out.push_back(static_cast<batch_request&>(m)); break;
            case batch_message::type::control: out.push_back(static_cast<batch_control&>(m)); break;
            case batch_message::type::cancel: delete static_cast<cancel_message*>(&m); break;
            case batch_message::type::ended: break;
            case batch_message::type::runner: runner_->drop(m, out); break;
            }
        }
        node = next;
    }
}

void batcher_core::shutdown(async_op_list& out) noexcept
{
    {
        const std::scoped_lock lock(schedule_mutex_);
        inbox_.close();
    }
    runner_->leave_members();
    executor_.release_work();
    cancellable_.clear();
    running_deadlines_.clear();
    while (batch_request* r = former_.pop())
        out.push_back(*r);
    for (batch_run* run : running_)
        for (batch_request*& member : run->members)
            if (batch_request* r = std::exchange(member, nullptr))
                out.push_back(*r);
    running_.clear();
    for (batch_control* c : controls_)
        out.push_back(*c);
    controls_.clear();
    completions_.take_all(out);
    empty_inbox(out);
    executor_.let_go(out);
    // Not destroyed here, under the lock of the execution context's list, but together with `out`.
    if (self_)
        out.push_back(*self_.release());
}

} // namespace coaccel::detail
