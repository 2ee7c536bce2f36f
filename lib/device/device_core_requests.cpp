#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>

namespace coaccel::detail {
namespace {

// How many requests one turn starts before it yields the executor.
constexpr int launches_per_turn = 256;

/// Adds what a loaded plan does now to the row of its name.
void add_loaded(std::vector<plan_stats>& rows, const loaded_plan& p)
{
    auto row = std::ranges::find(rows, p.title.text, &plan_stats::op);
    if (row == rows.end()) {
        rows.emplace_back().op = p.title.text;
        row = rows.end() - 1;
    }
    row->instances += p.instances.size();
    row->running += p.running();
    row->waiting += p.pool.parked();
    row->quarantined += p.is_quarantined() ? 1 : 0;
}

} // namespace

void device_core::on_request(request& r)
{
    r.arrived = now_;
    r.sequence = ++arrivals_;
    cancellable_.add(r);
    switch (r.call) {
    case request_kind::exec: return on_exec(r);
    case request_kind::stats: controls_.add(r); return;
    case request_kind::start:
        if (supply_.unusable())
            return complete(r, supply_.unusable());
        controls_.add(r);
        return follow(life_.start());
    case request_kind::shutdown: return on_shutdown(static_cast<shutdown_call&>(r));
    case request_kind::replace: return on_replace(r);
    case request_kind::revive: return on_revive(r);
    case request_kind::pinned:
    case request_kind::compile: return on_side_call(r);
    case request_kind::load: return on_load(static_cast<load_call&>(r));
    case request_kind::unload: return on_unload(static_cast<unload_call&>(r));
    case request_kind::revive_plan: return on_revive_plan(static_cast<revive_plan_call&>(r));
    case request_kind::durable: return on_durable(static_cast<durable_call&>(r));
    case request_kind::trust: return on_trust(static_cast<trust_call&>(r));
    case request_kind::part: break;
    }
}

void device_core::on_exec(request& r)
{
    if (life_.stopping())
        return complete(r, errc::device_stopped);
    if (life_.failed())
        return complete(r, errc::device_failed);
    if (const auto ec = refusal_of(r))
        return complete(r, ec);
    const auto open = [this] { return context_ && context_->accepting() && life_.open() && !isolates_load(); };
    // Requests that arrived in the same turn have not been started yet, although there may be room for them.
    if (admission_.would_refuse(r) && open()) {
        expire();
        launch();
    }
    // During a replacement it would keep requests for the old context from starting.
    const bool alone = r.pool && static_cast<const run_call&>(r).part_of_suspect && !life_.replacing();
    if (alone && admission_.in_flight() > 0)
        limit_isolation();
    if (auto ec = alone ? admission_.offer_alone(r, now_) : admission_.offer(r, open(), now_))
        return complete(r, ec);
    begin_run(r);
}

void device_core::on_shutdown(shutdown_call& r)
{
    stop(r.mode == coaccel::shutdown::abandon);
    if (life_.state() == device_state::stopped)
        return complete(r, {});
    controls_.add(r);
    if (r.mode != coaccel::shutdown::abandon)
        return;
    while (request* waiting = admission_.pop())
        complete(*waiting, errc::device_stopped);
    end_side_calls(errc::device_stopped);
    end_plan_calls(errc::device_stopped);
    end_durable_calls(errc::device_stopped);
}

void device_core::on_replace(request& r)
{
    if (life_.stopping())
        return complete(r, errc::device_stopped);
    if (life_.failed())
        return complete(r, errc::device_failed);
    controls_.add(r);
    if (!life_.replacing())
        controls_.begin_replacement(r.sequence);
    life_.replace();
}

void device_core::on_revive(request& r)
{
    if (life_.stopping())
        return complete(r, errc::device_stopped);
    refused_loads_.clear();
    if (life_.healthy())
        return complete(r, {});
    if (life_.failed_for_good())
        return complete(
            r, make_error_with_message(errc::device_failed, "no context can follow in this process after \"" +
                                                                life_.reason().message() +
                                                                "\"; a device with isolation::worker gets another"));
    controls_.add(r);
    follow(life_.revive());
}

void device_core::on_cancel(std::uint64_t cancel_id, ending why)
{
    request* const found = cancellable_.find(cancel_id);
    if (!found)
        return;
    request& r = *found;
    switch (r.call) {
    case request_kind::exec:
        if (!r.queued)
            return give_up(r, why);
        admission_.remove(r);
        break;
    case request_kind::pinned: pinned_.remove(static_cast<pinned_call&>(r)); break;
    case request_kind::compile: compiles_.remove(static_cast<compile_call&>(r)); break;
    case request_kind::load: cancel_load(static_cast<load_call&>(r)); break;
    case request_kind::unload: static_cast<unload_call&>(r).detach_plans(); break;
    case request_kind::durable: drop_durable_call(static_cast<durable_call&>(r)); break;
    // They are answered in the turn in which they arrive.
    case request_kind::revive_plan:
    case request_kind::trust:
    case request_kind::part: return;
    case request_kind::start:
    case request_kind::shutdown:
    case request_kind::replace:
    case request_kind::revive:
    case request_kind::stats:
        if (!controls_.remove(r))
            return;
        break;
    }
    complete(r, asio::error::operation_aborted);
}

void device_core::on_cancel_all()
{
    while (request* r = admission_.pop())
        complete(*r, asio::error::operation_aborted);
    admission_.for_each_in_flight([this](request& r) { give_up(r, ending::terminal); });
    end_side_calls(asio::error::operation_aborted);
    end_plan_calls(asio::error::operation_aborted);
    end_durable_calls(asio::error::operation_aborted);
}

// A release never overtakes earlier requests.
void device_core::release_due()
{
    const request* waiting = admission_.oldest();
    while (!releases_.empty() && (!waiting || releases_.front()->after < waiting->sequence)) {
        release(releases_.front()->ref);
        releases_.pop_front();
    }
}

void device_core::expire()
{
    while (request* r = admission_.expired(now_)) {
        if (r->in_flight.is_linked())
            give_up(*r, ending::deadline);
        else
            complete(*r, errc::deadline_exceeded);
    }
}

/// The caller of an in-flight request gives up waiting for it.
void device_core::give_up(request& r, ending why) noexcept
{
    const auto stage = r.given_up == given_up::no ? op_stage::started : op_stage::given_up;
    const answer when = when_to_answer(stage, why, r.uses_callers_memory);
    if (when == answer::as_it_ends)
        return;
    r.given_up = why == ending::deadline ? given_up::expired : given_up::cancelled;
    if (when == answer::when_left)
        return;
    async_op_base* early = r.detach(error_of(r.given_up));
    // If the early completion cannot be allocated, the caller is answered when the op ends.
    if (!early)
        return;
    r.answered = true;
    cancellable_.remove(r);
    count(r, error_of(r.given_up));
    completions_.add(*early);
}

/// Whether the next waiting request may run on the current context. Requests that arrived before a replacement was
/// requested still run on the old context, because their refs belong to it.
bool device_core::may_start() noexcept
{
    const request* next = admission_.front();
    // A suspect is alone on the device; requests for plans count as others.
    if (admission_.isolating() && (plans_.pending() || durable_.pending()))
        return false;
    if (durable_.must_import() || isolates_load())
        return false;
    return next && life_.running() && (life_.open() || controls_.precedes_replacement(next->sequence));
}

void device_core::launch()
{
    for (int n = 0; n < launches_per_turn && context_->accepting(); ++n) {
        release_due();
        request* r = may_start() ? admission_.next(order()) : nullptr;
        if (!r)
            return;
        if (r->pool)
            use_instance(static_cast<run_call&>(*r));
        // First, because it may end at once.
        note_started(*r);
        if (const auto ec = durable_.begin(*r))
            finished(*r, ec);
        else
            context_->submit(*r, now_);
    }
}

void device_core::finished(request& r, error_code ec) noexcept
{
    if (r.call == request_kind::part) {
        auto& part = static_cast<load_part&>(r);
        if (part.durable)
            return on_durable_part(part, ec);
        return part.standby ? on_standby_part(part, ec) : on_part(part, ec);
    }
    admission_.finished(r);
    trace_.ended(r, ec, std::max(now_, r.ended));
    durable_.end(r, ec);
    note_ended(r, ec);
    if (run_again(r, ec))
        return;
    inquiry_.ended(r);
    if (!ec)
        note_pace(r);
    statistics_.ran(r, std::max(now_, r.ended) - r.arrived);
    end_run(r);
    // Destroying it releases the memory it allocated.
    if (r.answered)
        return r.destroy();
    complete(r, r.given_up == given_up::no ? ec : error_of(r.given_up));
}

void device_core::complete(request& r, error_code ec) noexcept
{
    cancellable_.remove(r);
    inquiry_.ended(r);
    trace_.answered(r, ec, now_);
    count(r, ec);
    end_run(r);
    r.ec = ec;
    completions_.add(r);
}

void device_core::count(const request& r, const error_code& ec) noexcept
{
    if (r.call == request_kind::exec)
        statistics_.ended(r, ec);
}

void device_core::fill(device_stats& s) const
{
    s.state = life_.state();
    if (s.state == device_state::ready && admission_.in_flight() > 0)
        s.state = device_state::busy;
    s.generation = identity_.generation;
    s.queued = admission_.queued();
    s.in_flight = admission_.in_flight();
    s.at = clock::now();
    s.restarts = identity_.generation > 1 ? identity_.generation - 1 : 0;
    s.plan_instances = plan_instances_;
    s.standby_plans = standby_plans_.loaded();
    s.reruns = reruns_;
    s.convicted = convicted_;
    s.quarantined_plans = static_cast<std::uint64_t>(
        std::ranges::count_if(plans_.all(), [](const auto& p) { return p->is_quarantined(); }));
    s.suspect_buffers = durable_.suspects();
    if (context_) {
        s.backend = context_->backend_name();
        s.hardware = context_->hardware();
        s.memory = context_->memory();
        s.live_buffers = context_->live_buffers();
    }
    // The contexts do not count it, and it exists without any.
    s.memory.shared = plans_.shared().bytes() + plans_.durable_bytes() + durable_.bytes();
    s.memory.used += s.memory.shared;
    s.memory.reserved += s.memory.shared;
    s.memory.high_water += s.memory.shared;
    statistics_.fill(s);
    for (const auto& p : plans_.all())
        if (!p->data.over_buffers)
            add_loaded(s.plans, *p);
}

} // namespace coaccel::detail
