#include "actor/restart_text.hpp"
#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"

#include <coaccel/core/log.hpp>

#include <new>
#include <string>
#include <utility>
#include <vector>

namespace coaccel::detail {

void device_core::follow(lifecycle::step step)
{
    switch (step.what) {
    case lifecycle::command::none: return;
    case lifecycle::command::create: return create_context();
    case lifecycle::command::wait: retry_at_ = step.when; return;
    case lifecycle::command::fail: return fail_everything();
    case lifecycle::command::close: return close_context();
    case lifecycle::command::give_up: return supply_.give_up();
    case lifecycle::command::finish: return finish_stop();
    }
}

// The job captures the device to keep it alive, because a context reports to it.
void device_core::create_context()
{
    if (supply_.orphaned())
        return follow(life_.lost_for_good(make_error_with_message(
            errc::start_failed, "a forked child of the process that has workers cannot start any")));
    controls_.creating(arrivals_);
    if (take_over())
        return install();
    executor_.begin(device_executor::work::context);
    // The other context would have to wait for it.
    if (standby_slot_.creating())
        return standby_slot_.want();
    const context_identity next{identity_.device, identity_.generation + 1};
    const auto no_thread = supply_.run_creation([self = shared_from_this(), next] {
        auto made = self->supply_.make(next, *self, self->options_.context);
        self->push(*new created_node(std::move(made)));
    });
    if (!no_thread)
        return;
    executor_.end(device_executor::work::context);
    on_create_failed(no_thread);
}

void device_core::on_create_failed(error_code why)
{
    controls_.create_failed(why, completer());
    trace_.lost(why, "creation", now_);
    // A context that died in a separate process does not prevent the creation of another.
    follow_failure(why,
                   supply_.isolated() ? life_.lost(why, now_, chance()) : life_.create_failed(why, now_, chance()));
}

void device_core::on_created(created_node& node)
{
    executor_.end(device_executor::work::context);
    if (!node.made)
        return on_create_failed(node.made.error());
    context_ = std::move(node.made).value();
    install();
}

/// The device has a context.
void device_core::install()
{
    standby_slot_.renewed();
    ++identity_.generation;
    life_.created();
    trace_.ready(identity_.generation, context_->backend_name(), now_);
    if (log_enabled(log_level::info))
        log_line(log_level::info, "ready, generation " + std::to_string(identity_.generation) + " on " +
                                      std::string(context_->backend_name()));
    publish();
    // After the context is in place, so that an observer of the new generation can use it at once.
    published_.set(identity_.generation);
    controls_.created(completer());
}

void device_core::lost(error_code why, loss_cause cause) noexcept
{
    // The context is still on the call stack; it is destroyed after its turn.
    lost_ = {why, cause};
}

void device_core::on_lost(error_code why, loss_cause cause)
{
    const bool replaceable = context_->replaceable();
    dispose(std::move(context_));
    forget_plans();
    durable_.context_lost(cause);
    lose_states(cause);
    if (cause == loss_cause::hardware)
        distrust_shared();
    trace_.lost(why, name_of(cause), now_);
    follow_failure(why, replaceable ? judge(why, cause) : life_.lost_for_good(why));
}

void device_core::follow_failure(const error_code& why, lifecycle::step step)
{
    const bool failed = step.what == lifecycle::command::fail;
    if (failed)
        trace_.failed(why, now_);
    // For a stopping device, a failure to get a context is not a problem.
    const auto level = life_.stopping() ? log_level::info : failed ? log_level::error : log_level::warning;
    if (log_enabled(level)) {
        // The message may come from a worker; escape it, so that it cannot forge other log messages.
        const auto reason = escape_text(why.message());
        if (!failed)
            log_line(level, reason + restart_text(life_.restarts(now_), life_.max_restarts()));
        else
            log_line(level, "failed: " + reason + (life_.used_up() ? used_up_text(options_.restart) : std::string()));
    }
    follow(step);
}

void device_core::log_line(log_level level, const std::string& text) const
{
    log(level, "device " + std::to_string(identity_.device) + ": " + text);
}

void device_core::dispose(std::unique_ptr<context> dead)
{
    if (supply_.orphaned()) {
        // In a forked child: the threads of the context belong to the parent process and cannot be stopped here.
        (void)dead.release();
        return;
    }
    supply_.run_end(
        [self = shared_from_this(), dead = std::shared_ptr<context>(std::move(dead))]() mutable { dead.reset(); });
}

void device_core::unused(std::shared_ptr<void> owner) noexcept
{
    try {
        unused_.push_back(std::move(owner));
    } catch (const std::bad_alloc&) {
        // `owner` is destroyed here.
    }
}

// A deleter is foreign code and may block: cudaFree waits for the GPU.
void device_core::dispose_owners()
{
    supply_.run_end([owners = std::exchange(unused_, {})]() mutable { owners.clear(); });
}

void device_core::close_context()
{
    // If no other context follows, the standby resources are released too, before the device reports that it has
    // stopped.
    auto maker = std::make_shared<context_factory>();
    if (life_.stopping())
        *maker = supply_.take_factory();
    forget_plans();
    durable_.context_closed();
    close_states();
    executor_.begin(device_executor::work::context);
    supply_.run_end([self = shared_from_this(), maker = std::move(maker),
                     last = std::shared_ptr<context>(std::move(context_))]() mutable {
        auto node = std::make_unique<gone_node>();
        last->drop(node->dropped);
        last.reset();
        maker.reset();
        self->push(*node.release());
    });
}

void device_core::stop(bool abandon)
{
    life_.stop(abandon);
    if (life_.state() != device_state::stopped && !executor_.has(device_executor::work::stopping))
        executor_.begin(device_executor::work::stopping);
    controls_.stopping(completer());
}

void device_core::fail_everything()
{
    controls_.failed(life_.reason(), completer());
    while (request* r = admission_.pop())
        complete(*r, errc::device_failed);
    end_side_calls(errc::device_failed);
    end_plan_calls(errc::device_failed);
    end_durable_calls(errc::device_failed);
    end_standby();
    if (life_.failed_for_good())
        supply_.drop_factory();
    else
        supply_.release_standbys();
}

void device_core::finish_stop()
{
    life_.closed();
    if (log_enabled(log_level::info))
        log_line(log_level::info, "stopped");
    retry_at_ = clock::time_point::max();
    executor_.cancel_timer();
    executor_.end(device_executor::work::stopping);
    controls_.end_starts(completer());
    while (request* r = admission_.pop())
        complete(*r, errc::device_stopped);
    end_side_calls(errc::device_stopped);
    end_plans(errc::device_stopped);
    end_durable_calls(errc::device_stopped);
    durable_.clear();
    controls_.end_shutdowns(completer());
    publish();
    published_.close();
    supply_.drop_factory();
    self_.reset();
}

/// A context in a worker detects its own end and reports it. A context in this process has no thread left to do so.
void device_core::lose_as_orphan()
{
    // A thread of the parent process that was creating or closing a context at the fork reports nothing here. A context
    // that is closed after the fork is closed by a thread of this process.
    const bool first = supply_.notice_orphan();
    if (first) {
        disown_standby();
        // The memory belongs to the parent; a child that held it would keep it after the end of the parent.
        end_durable_calls(errc::context_lost);
        durable_.clear();
    }
    const bool parents_work = first && executor_.has(device_executor::work::context);
    if (parents_work)
        executor_.end(device_executor::work::context);
    if (supply_.isolated() && context_)
        return;
    // First, so that lost requests are not queued to run again.
    if (life_.state() != device_state::stopped && !life_.failed())
        follow(life_.lost_for_good(errc::context_lost));
    if (parents_work)
        lose_in_flight();
    if (!context_)
        return;
    async_op_list lost;
    context_.release()->disown(lost);
    while (async_op_base* p = lost.pop_front())
        finished(static_cast<request&>(*p), errc::context_lost);
}

/// Ends the requests whose context was passed to a thread of the parent process.
void device_core::lose_in_flight()
{
    std::vector<request*> lost;
    admission_.for_each_in_flight([&lost](request& r) { lost.push_back(&r); });
    for (request* r : lost)
        finished(*r, errc::context_lost);
}

double device_core::chance()
{
    return std::uniform_real_distribution<double>(0.0, 1.0)(random_);
}

} // namespace coaccel::detail
