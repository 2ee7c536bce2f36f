#include "actor/restart_text.hpp"
#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"
#include "posix/fork_detector.hpp"

#include <coaccel/core/log.hpp>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

#include <new>
#include <string>
#include <system_error>
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
    case lifecycle::command::give_up:
        if (source_.give_up)
            source_.give_up();
        return;
    case lifecycle::command::finish: return finish_stop();
    }
}

// The job captures the device to keep it alive, because a context reports to it.
void device_core::create_context()
{
    if (orphaned())
        return follow(life_.lost_for_good(make_error_with_message(
            errc::start_failed, "a forked child of the process that has workers cannot start any")));
    created_after_ = arrivals_;
    context_work_.emplace(executor());
    const auto no_thread = run_off_executor(
        blocking_pool::kind::contexts,
        [self = shared_from_this(), generation = generation_count_ + 1] {
            auto made = self->source_.make({self->device_id_, generation}, *self, self->options_.context);
            self->push(*new created_node(std::move(made)));
        },
        source_.give_up);
    if (!no_thread)
        return;
    context_work_.reset();
    on_create_failed(no_thread);
}

void device_core::on_create_failed(error_code why)
{
    end_replacements(why, created_after_);
    // A context that died in a separate process does not prevent the creation of another.
    follow_failure(why, source_.isolated ? life_.lost(why, now_, chance()) : life_.create_failed(why, now_, chance()));
}

void device_core::on_created(created_node& node)
{
    context_work_.reset();
    if (!node.made)
        return on_create_failed(node.made.error());
    context_ = std::move(node.made).value();
    ++generation_count_;
    life_.created();
    if (log_enabled(log_level::info))
        log_line(log_level::info, "ready, generation " + std::to_string(generation_count_) + " on " +
                                      std::string(context_->backend_name()));
    publish();
    // After the context is in place, so that an observer of the new generation can use it at once.
    published_.set(generation_count_);
    while (async_op_base* p = starting_.pop_front())
        complete(static_cast<request&>(*p), {});
    end_replacements({}, created_after_);
    end_revivals({});
}

void device_core::lost(error_code why) noexcept
{
    // The context is still on the call stack; it is destroyed after its turn.
    lost_ = why;
}

void device_core::on_lost(error_code why)
{
    const bool replaceable = context_->replaceable();
    dispose(std::move(context_));
    const bool standby = source_.has_standby && source_.has_standby();
    follow_failure(why, replaceable ? life_.lost(why, now_, chance(), standby) : life_.lost_for_good(why));
}

void device_core::follow_failure(const error_code& why, lifecycle::step step)
{
    const bool failed = step.what == lifecycle::command::fail;
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
    log(level, "device " + std::to_string(device_id_) + ": " + text);
}

void device_core::dispose(std::unique_ptr<context> dead)
{
    if (orphaned()) {
        // In a forked child: the threads of the context belong to the parent process and cannot be stopped here.
        (void)dead.release();
        return;
    }
    end_off_executor(
        [self = shared_from_this(), dead = std::shared_ptr<context>(std::move(dead))]() mutable { dead.reset(); });
}

void device_core::close_context()
{
    // If no other context follows, the standby resources are released too, before the device reports that it has
    // stopped.
    auto maker = std::make_shared<context_factory>();
    if (life_.stopping())
        maker->swap(source_.make);
    context_work_.emplace(executor());
    end_off_executor([self = shared_from_this(), maker = std::move(maker),
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
    if (life_.state() != device_state::stopped && !stopping_work_)
        stopping_work_.emplace(executor());
    end_replacements(errc::device_stopped, arrivals_);
    end_revivals(errc::device_stopped);
}

void device_core::end_revivals(error_code ec)
{
    while (async_op_base* p = reviving_.pop_front())
        complete(static_cast<request&>(*p), ec);
}

/// Completes the replacement requests up to sequence number `up_to`.
void device_core::end_replacements(error_code ec, std::uint64_t up_to)
{
    while (!replacing_.empty() && static_cast<request&>(*replacing_.front()).sequence <= up_to)
        complete(static_cast<request&>(*replacing_.pop_front()), ec);
}

void device_core::fail_everything()
{
    end_replacements(errc::device_failed, arrivals_);
    end_revivals(life_.reason());
    while (async_op_base* p = starting_.pop_front())
        complete(static_cast<request&>(*p), life_.reason());
    while (request* r = admission_.pop())
        complete(*r, errc::device_failed);
    end_side_calls(errc::device_failed);
    if (life_.failed_for_good())
        drop_source();
    else if (source_.rest)
        end_off_executor(source_.rest);
}

void device_core::finish_stop()
{
    life_.closed();
    if (log_enabled(log_level::info))
        log_line(log_level::info, "stopped");
    retry_at_ = clock::time_point::max();
    timer_->cancel();
    stopping_work_.reset();
    while (async_op_base* p = starting_.pop_front())
        complete(static_cast<request&>(*p), errc::device_stopped);
    while (request* r = admission_.pop())
        complete(*r, errc::device_stopped);
    end_side_calls(errc::device_stopped);
    while (async_op_base* p = stopping_.pop_front())
        complete(static_cast<request&>(*p), {});
    publish();
    published_.close();
    drop_source();
    self_.reset();
}

/// Errors: errc::start_failed if no thread can be started, errc::out_of_memory. The job is then destroyed without
/// having run.
error_code device_core::run_off_executor(blocking_pool::kind what, std::function<void()> job,
                                         std::function<void()> hurry)
try {
    if (!source_.blocks) {
        job();
        return {};
    }
    auto& where = asio::query(executor(), asio::execution::context);
    if (!asio::use_service<blocking_pool>(where).run(what, std::move(job), std::move(hurry)))
        return make_error_with_message(errc::start_failed, "no helper thread of the device could be started");
    return {};
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
} catch (const std::system_error& e) {
    return make_error_with_message(errc::start_failed, std::string("a helper thread of the device: ") + e.what());
}

/// Runs a job that stops something and may block. It runs on the executor only if no thread can be started, because it
/// must not be skipped.
void device_core::end_off_executor(std::function<void()> job)
{
    const auto shared = std::make_shared<std::function<void()>>(std::move(job));
    if (run_off_executor(blocking_pool::kind::contexts, [shared] { std::exchange(*shared, nullptr)(); }))
        (*shared)();
}

/// Destroys the context factory; no further context will be created. Stopping standby resources, such as workers, may
/// block.
void device_core::drop_source()
{
    if (!source_.make)
        return;
    auto last = std::make_shared<context_factory>(std::move(source_.make));
    source_.make = nullptr;
    if (orphaned()) {
        (void)new auto(std::move(last));
        return;
    }
    end_off_executor([last = std::move(last)]() mutable { last.reset(); });
}

/// Whether this is a forked child, in which the threads and the workers belong to the parent process.
bool device_core::orphaned() const noexcept
{
    if (source_.isolated)
        return forked();
    return source_.blocks && fork_count() != forks_;
}

/// A context in a worker detects its own end and reports it. A context in this process has no thread left to do so.
void device_core::lose_as_orphan()
{
    // A thread of the parent process that was creating or closing a context at the fork reports nothing here. A context
    // that is closed after the fork is closed by a thread of this process.
    const bool parents_work = !std::exchange(orphan_, true) && context_work_;
    if (parents_work)
        context_work_.reset();
    if (source_.isolated && context_)
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
