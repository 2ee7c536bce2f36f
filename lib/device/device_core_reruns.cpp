#include "context/buffers/operands.hpp"
#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

// What follows for requests whose context has died: those that can run again do so, alone on the next context.
namespace coaccel::detail {
namespace {

/// A request whose contexts die this often without a proof that it is the cause is not tried again.
constexpr int most_losses = 8;

/// Null: it is not a run of a plan.
loaded_plan* plan_of(const request& r) noexcept
{
    return r.pool ? &static_cast<const run_call&>(r).plan() : nullptr;
}

/// Whether the request may be tried again after as many losses as it has had.
bool has_tries_left(const request& r) noexcept
{
    const loaded_plan* const p = plan_of(r);
    const bool once = p && r.options.retry != retry::idempotent && p->options.rerun == rerun_policy::once;
    return r.losses < (once ? 2 : most_losses);
}

/// Whether its operands refer only to memory that it allocates itself, or that outlives the context.
bool names_nothing_old(const request& r) noexcept
{
    const auto made_before = [&](std::size_t op, const any_ref& ref) {
        return std::ranges::any_of(r.ops.first(op), [&](const bound_op& o) {
            return makes_buffer(o.info->role) && same_memory(static_cast<const allocation*>(o.reply)->ref, ref);
        });
    };
    for (std::size_t i = 0; i < r.ops.size(); ++i)
        for (std::size_t f = 0; f < r.ops[i].info->operands.size(); ++f) {
            const any_ref& ref = operand_of(r.ops[i], f);
            if (ref.device != 0 && !is_durable(ref) && !made_before(i, ref))
                return false;
        }
    return true;
}

std::string name_of(const request& r)
{
    return r.title ? r.title->text : r.ops.front().info->name;
}

} // namespace

/// Whether a request whose context has died can be repeated as if it had never begun.
bool device_core::is_repeatable(const request& r) const noexcept
{
    const loaded_plan* const p = plan_of(r);
    if (p && p->closing)
        return false;
    if (r.options.retry == retry::idempotent)
        return p || names_nothing_old(r);
    return p && p->repeatable && p->options.rerun != rerun_policy::never;
}

/// Queues a request again that was on a context when it died. False: it cannot run again.
bool device_core::run_again(request& r, const error_code& ec) noexcept
{
    // An error of this kind from a context that works is the answer of a worker that is not to be trusted.
    if (!ec || !is_context_lost(ec) || !context_ || context_->accepting() || !context_->replaceable())
        return false;
    if (life_.abandoning() || life_.failed())
        return false;
    if (r.given_up != given_up::no || !is_repeatable(r)) {
        inquiry_.answered(r);
        return false;
    }
    ++r.losses;
    // One that was alone waits for the verdict.
    if (!inquiry_.is_alone(r) && !has_tries_left(r))
        return false;
    r.outcome = {};
    for (bound_op& o : r.ops) {
        o.status = {};
        o.state = nullptr;
    }
    admission_.put_back(r, r.was_overdue ? suspicion::prime : suspicion::suspect);
    return true;
}

/// The context is gone, and everything that was on it waits again or has ended. Returns what the lifecycle is to do.
lifecycle::step device_core::judge(const error_code& why, loss_cause cause)
{
    const auto load = load_isolation_.take_lost();
    const auto v = inquiry_.lost(cause, admission_.isolating());
    const bool alarm = std::exchange(moved_, false);
    const bool already_blamed = v.alone && v.alone->pool && static_cast<const run_call&>(*v.alone).part_of_suspect;
    if (v.convicted)
        trace_.convicted(v.alone ? name_of(*v.alone) : std::string(), now_);
    if (v.alone && (v.convicted || !has_tries_left(*v.alone))) {
        admission_.remove(*v.alone);
        complete(*v.alone, v.convicted
                               ? op_error(errc::context_lost, name_of(*v.alone),
                                          {"it ended the context while nothing else was on it, so it does not run "
                                           "again: ",
                                           why.message()})
                               : make_error_code(errc::context_lost));
    }
    if (v.convicted) {
        ++convicted_;
        const auto poisoned = std::ranges::find(plans_.all(), v.plan, [](const auto& p) { return p->number; });
        if (poisoned != plans_.all().end() && !already_blamed)
            note_poison(**poisoned);
        for (const auto& p : plans_.all())
            p->loads.explained();
    }
    if (v.convicted || alarm)
        return life_.lost_excused(why, now_, v.earlier);
    if (load.plan != 0 && cause == loss_cause::fault)
        if (const auto earlier = judge_load(load, why))
            return life_.lost_excused(why, now_, *earlier);
    const bool standby = standby_slot_.creating() || standby_slot_.present() || supply_.has_standby();
    return life_.lost(why, now_, chance(), standby);
}

/// A run of the plan has ended a context. Too many of them, and no run of the plan is accepted any more, so that it
/// does not keep the device from everything else. Preconditions: no run of the plan has an instance.
void device_core::note_poison(loaded_plan& p)
{
    if (log_enabled(log_level::warning))
        log_line(log_level::warning, escape_text(p.title.text) + ": a run ended the context while it was alone");
    if (!p.poison.add(now_) || p.is_quarantined())
        return;
    quarantine(p);
    std::vector<request*> parts;
    while (request* r = admission_.pop(p.pool)) {
        if (static_cast<const run_call&>(*r).part_of_suspect)
            parts.push_back(r);
        else
            complete(*r, is_quarantined(p));
    }
    for (request* r : parts)
        admission_.put_back(*r, suspicion::suspect);
}

/// No run of the plan is accepted any more.
void device_core::quarantine(loaded_plan& p)
{
    p.quarantined.store(true, std::memory_order_relaxed);
    trace_.quarantined(p.title.text, now_);
    if (log_enabled(log_level::error))
        log_line(log_level::error, "quarantined: " + escape_text(is_quarantined(p).message()));
}

error_code device_core::is_quarantined(const loaded_plan& p) noexcept
{
    if (p.loads.refused())
        return op_error(errc::plan_quarantined, p.title.text,
                        {"loading it ended the context of the device ", load_suspicion::most_losses,
                         " times while nothing else was on it"});
    return op_error(errc::plan_quarantined, p.title.text,
                    {"more than ", p.options.poison_limit, " runs ended the context of the device within a minute"});
}

void device_core::on_revive_plan(revive_plan_call& r)
{
    loaded_plan& p = *r.plan;
    p.poison.reset();
    p.loads = {};
    refused_loads_.forget(p.description.id());
    p.quarantined.store(false, std::memory_order_relaxed);
    revive_states(p);
    complete(r, p.gone || p.closing ? is_unloaded(p) : error_code());
}

/// A request has been given to the context.
void device_core::note_started(request& r) noexcept
{
    load_isolation_.other_started();
    // Not every context notes it.
    r.launched = now_;
    const loaded_plan* const p = plan_of(r);
    if (p)
        for (const auto& s : p->durable_states)
            if (s)
                s->trust.write_started();
    if (r.suspicion != suspicion::none) {
        if (r.losses > 0) {
            ++reruns_;
            if (r.pool)
                statistics_.rerun(r);
        }
        isolation_end_ = clock::time_point::max();
        limit_isolation();
        // It may run beside one that takes very long.
        if (admission_.in_flight() == 1)
            inquiry_.started(r, p ? p->number : 0);
    }
    if (p && p->pace.enabled() && !r.was_overdue && p->pace.limit() != clock::duration::max())
        next_overdue_ = std::min(next_overdue_, now_ + p->pace.limit());
}

/// A run of a plan has ended, and with it its use of durable states.
void device_core::note_ended(const request& r, const error_code& ec) noexcept
{
    using ending = durable_trust::ending;
    const loaded_plan* const p = plan_of(r);
    if (!p)
        return;
    const ending how = !ec ? ending::done : is_context_lost(ec) || is_device_lost(ec) ? ending::lost : ending::failed;
    for (const auto& s : p->durable_states)
        if (s)
            s->trust.write_ended(how);
}

/// A run has ended without an error.
void device_core::note_pace(const request& r) noexcept
{
    loaded_plan* const p = plan_of(r);
    if (!p || !p->pace.enabled())
        return;
    p->pace.ended(std::max(now_, r.ended) - r.launched);
    if (r.was_overdue)
        p->pace.false_alarm();
}

/// Called when a suspect starts, or waits for requests that were started before it.
void device_core::limit_isolation() noexcept
{
    isolation_end_ = std::min(isolation_end_, now_ + longest_isolation(options_.context.hang_timeout));
}

/// A suspect that takes very long, or never ends, must not keep everything else from the device.
void device_core::end_long_isolation()
{
    if (now_ < isolation_end_)
        return;
    isolation_end_ = clock::time_point::max();
    request* suspect = nullptr;
    admission_.for_each_in_flight([&suspect](request& r) {
        if (r.suspicion != suspicion::none)
            suspect = &r;
    });
    if (!suspect)
        return admission_.stop_isolating_waiting();
    if (log_enabled(log_level::warning))
        log_line(log_level::warning, escape_text(name_of(*suspect)) +
                                         ": it runs alone because its context has died, and takes long; others "
                                         "start beside it now");
    inquiry_.ended(*suspect);
    admission_.stop_isolating(*suspect);
}

/// Moves to the standby if a run takes much longer than usual: the driver may take long to report a fault.
void device_core::look_for_overdue()
{
    if (now_ < next_overdue_)
        return;
    next_overdue_ = clock::time_point::max();
    if (!context_ || !context_->accepting())
        return;
    request* late = nullptr;
    admission_.for_each_in_flight([&](request& r) {
        const loaded_plan* const p = plan_of(r);
        if (!p || !p->pace.enabled() || r.was_overdue || !p->repeatable || !is_repeatable(r) ||
            p->pace.limit() == clock::duration::max() || p->loads.refused_on_standby())
            return;
        const auto at = r.launched + p->pace.limit();
        if (at > now_)
            next_overdue_ = std::min(next_overdue_, at);
        else if (!late)
            late = &r;
    });
    // Without a standby that is ready, the device would be without a context for longer than the driver needs. A
    // suspect is alone anyway.
    const bool ready = standby_slot_.present() && standby_->accepting() && standby_plans_.complete(plans_);
    if (!late || !ready || admission_.isolating() || !life_.open())
        return;
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now_ - late->launched);
    const std::string why = name_of(*late) + ": a run has taken " + std::to_string(took.count()) +
                            " ms, so the device moves to its standby";
    late->was_overdue = true;
    moved_ = true;
    context_->abandon(why);
}

} // namespace coaccel::detail
