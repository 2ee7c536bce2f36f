#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"

#include <algorithm>
#include <string>
#include <utility>

// The standby: a context that loads the plans of the device before it is needed.
namespace coaccel::detail {
namespace {

// How many requests for plans one turn starts before it yields the executor.
constexpr int standby_parts_per_turn = 64;

} // namespace

// The job has its own copy of the function, because the device may give up its own while the job runs.
void device_core::create_standby()
{
    standby_slot_.begin(now_);
    const context_identity next{identity_.device, identity_.generation + 1};
    const auto no_thread = supply_.run_creation([self = shared_from_this(), next, make = supply_.standby_factory()] {
        auto node = std::make_unique<standby_node>();
        node->made = make(next, *self, self->options_.context);
        self->push(*node.release());
    });
    if (no_thread)
        standby_slot_.failed();
}

void device_core::on_standby(standby_node& node)
{
    while (async_op_base* p = node.dropped.pop_front())
        finished(static_cast<request&>(*p), errc::device_stopped);
    if (!standby_slot_.creating())
        return standby_slot_.left();
    const bool wanted = standby_slot_.wanted();
    if (wanted)
        executor_.end(device_executor::work::context);
    if (node.made) {
        standby_ = std::move(node.made).value();
        standby_woken_ = true;
        standby_slot_.made();
        // A device that has failed meanwhile has ended its other standbys.
        if (!wanted && (life_.failed() || life_.state() == device_state::stopped))
            return end_standby();
    } else {
        standby_slot_.failed();
        if (!life_.stopping() && log_enabled(log_level::warning))
            log_line(log_level::warning, "no standby: " + escape_text(node.made.error().message()));
    }
    if (wanted)
        create_context();
}

/// Starts requests for plans and looks for their ends. Returns when it wants the next turn.
next_turn device_core::advance_standby()
{
    if (!standby_slot_.present()) {
        const bool may_begin = context_ && life_.open() && !life_.stopping();
        if (may_begin && standby_slot_.due(now_, !plans_.empty()))
            create_standby();
        next_turn later;
        if (may_begin)
            later.at = standby_slot_.next_look(!plans_.empty());
        return later;
    }
    for (int n = 0; n < standby_parts_per_turn && standby_->accepting(); ++n) {
        load_part* part = standby_plans_.next(plans_, sharing_of(*standby_));
        if (!part)
            break;
        lost_on_standby_ = 0;
        submit_part(*part, *standby_);
    }
    next_turn next;
    if (std::exchange(standby_woken_, false) || standby_plans_.pending())
        next = turn_standby();
    if (!standby_slot_.present())
        return {next_turn::kind::again};
    if (standby_->accepting() && standby_plans_.has_next(plans_))
        next.when = next_turn::kind::again;
    return next;
}

next_turn device_core::turn_standby()
{
    const next_turn next = standby_->turn(now_);
    if (!lost_)
        return next;
    const auto [why, cause] = *std::exchange(lost_, std::nullopt);
    if (log_enabled(log_level::warning))
        log_line(log_level::warning, "standby lost: " + escape_text(why.message()));
    dispose(std::move(standby_));
    standby_plans_.forget_context();
    standby_slot_.left();
    judge_standby_load(cause);
    if (cause == loss_cause::hardware)
        distrust_shared();
    return {};
}

void device_core::on_standby_part(load_part& part, const error_code& ec)
{
    const auto plan = part.plan;
    const auto news = standby_plans_.finished(part, ec);
    log_unload_error(*plan, news.unload_error);
    if (standby_)
        for (const any_ref& r : news.unused)
            standby_->release(r);
    if (news.lost)
        lost_on_standby_ = news.lost->number;
    if (news.unshared)
        log_unshared(*news.unshared, news.unshared_error);
    if (news.failed && log_enabled(log_level::warning))
        log_line(log_level::warning, news.failed->title.text +
                                         " could not be loaded on the standby, so it is loaded "
                                         "after a take-over: " +
                                         escape_text(news.error.message()));
    // Runs that were overdue before it was ready have been looked at in vain.
    if (standby_ && standby_plans_.complete(plans_))
        next_overdue_ = now_;
    if (standby_ && standby_plans_.complete(plans_) && log_enabled(log_level::info))
        log_line(log_level::info, "standby ready with " + std::to_string(standby_plans_.loaded()) + " plans");
}

/// The standby becomes the context of the device. False: there is none, or it has just been lost.
bool device_core::take_over()
{
    if (standby_slot_.present())
        (void)turn_standby();
    if (!standby_slot_.present())
        return false;
    // Not lost, but on the way there: a new context is as fast as waiting for the end of this one.
    if (!standby_->accepting()) {
        end_standby();
        return false;
    }
    const std::size_t loaded = standby_plans_.loaded();
    standby_slot_.left();
    context_ = std::move(standby_);
    for (loaded_plan* p : plans_.adopt(standby_plans_)) {
        p->loads.loaded();
        for (std::uint32_t i = 0; i < p->instances.size(); ++i)
            admission_.add_instance(p->pool, i);
    }
    if (log_enabled(log_level::info))
        log_line(log_level::info, "standby took over with " + std::to_string(loaded) + " plans");
    return true;
}

/// The hardware has failed: no later context may rely on the constants and residents that contexts share. The standby,
/// which may have mapped them, is ended, and a context that uses them keeps them until it ends.
void device_core::distrust_shared()
{
    plans_.distrust_shared();
    durable_.distrust_contents();
    end_standby();
}

/// The standby is no longer needed. Its end is reported to `on_standby`.
void device_core::end_standby()
{
    if (!standby_slot_.present())
        return;
    standby_slot_.end();
    standby_plans_.forget_context();
    lost_on_standby_ = 0;
    supply_.run_end([self = shared_from_this(), last = std::shared_ptr<context>(std::move(standby_))]() mutable {
        auto node = std::make_unique<standby_node>();
        last->drop(node->dropped);
        last.reset();
        self->push(*node.release());
    });
}

/// Like lifecycle::advance_stop, but the standby ends first, so that nothing is left when the device has stopped.
void device_core::advance_stop()
{
    const bool ends = life_.stopping() && (!has_work() || life_.abandoning());
    // A context that is being awaited is ended by the lifecycle.
    if (!ends || standby_slot_.empty() || standby_slot_.wanted())
        return follow(life_.advance_stop(has_work()));
    if (standby_slot_.creating())
        supply_.give_up();
    else
        end_standby();
}

/// In a forked child: the process of the standby and the threads that make or end it belong to the parent.
void device_core::disown_standby()
{
    async_op_list lost;
    if (standby_)
        standby_.release()->disown(lost);
    standby_plans_.forget_context();
    lost_on_standby_ = 0;
    standby_slot_.left();
    while (async_op_base* p = lost.pop_front())
        finished(static_cast<request&>(*p), errc::context_lost);
}

} // namespace coaccel::detail
