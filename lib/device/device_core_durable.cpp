#include "context/buffers/operands.hpp"
#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>

#include <algorithm>
#include <string>
#include <vector>

// Durable buffers, and durable states of plans: memory that outlives the contexts of the device.
namespace coaccel::detail {
namespace {

constexpr std::string_view name = "memory.durable";

} // namespace

void device_core::on_durable(durable_call& r)
{
    if (life_.stopping())
        return complete(r, errc::device_stopped);
    if (life_.failed())
        return complete(r, errc::device_failed);
    if (auto ec = check_count(name, r.count, r.type))
        return complete(r, ec);
    if (options_.isolation != isolation::worker)
        return complete(r, op_error(errc::unsupported_op, name,
                                    {"the device is in this process, where memory ends with its context; use "
                                     "isolation::worker"}));
    durable_.add(r);
}

void device_core::on_trust(trust_call& r)
{
    complete(r, life_.stopping() ? make_error_code(errc::device_stopped) : durable_.trust(r.buffer));
}

void device_core::lose_states(loss_cause cause)
{
    // Plans of a set may share some, for which only the first call has an effect on the writers.
    for (const auto& p : plans_.all())
        for (const auto& s : p->durable_states)
            if (s)
                s->context_lost(cause);
    refuse_suspect_plans();
}

void device_core::close_states()
{
    for (const auto& p : plans_.all())
        for (const auto& s : p->durable_states)
            if (s)
                s->context_closed();
    refuse_suspect_plans();
}

/// Ends the runs that wait for a plan whose states cannot be relied on.
void device_core::refuse_suspect_plans()
{
    for (const auto& p : plans_.all()) {
        p->suspect.store(p->first_refused().has_value(), std::memory_order_relaxed);
        if (!p->is_suspect())
            continue;
        while (request* r = admission_.pop(p->pool))
            complete(*r, is_suspect(*p));
    }
}

error_code device_core::is_suspect(const loaded_plan& p)
{
    const auto i = p.first_refused();
    const std::string_view state = i ? std::string_view(p.data.slots[p.data.states[*i]].name) : "";
    if (i && p.durable_states[*i]->unusable)
        return op_error(errc::buffer_suspect, p.title.text,
                        {"the memory of the state ", state,
                         " cannot be used in this context: ", p.durable_states[*i]->unusable.get().message(),
                         "; plan::async_revive begins again with its initial content"});
    return op_error(
        errc::buffer_suspect, p.title.text,
        {"the state ", state, " may have been half-written when a context was lost; decide with plan::async_revive"});
}

/// The user has decided about the durable states of the plan, which is loaded again if it could not be.
void device_core::revive_states(loaded_plan& p)
{
    for (std::size_t i = 0; i < p.durable_states.size(); ++i) {
        const auto& s = p.durable_states[i];
        if (!s)
            continue;
        if (s->unusable)
            s->discard();
        else if (p.rule_of(i) == suspect_rule::fail)
            s->trust.trust();
        // Other plans of the set could not be loaded for the same reason.
        for (const auto& other : plans_.all())
            if (std::ranges::find(other->durable_states, s) != other->durable_states.end())
                other->broken = {};
    }
    p.broken = {};
    refuse_suspect_plans();
}

void device_core::advance_durable()
{
    // A context in which buffers cannot be made cannot import them either, and says so.
    if (durable_.first_call() && !context_->can_export())
        end_durable_calls(
            op_error(errc::unsupported_op, name, {"the ", context_->backend_name(), " backend cannot export memory"}));
    if (!can_advance_durable())
        return;
    load_isolation_.other_started();
    context_->submit(*durable_.next(durable_scope()), now_);
}

void device_core::on_durable_part(load_part& part, const error_code& ec)
{
    const auto news = durable_.finished(part, ec);
    if (context_ && news.unused.device != 0)
        context_->release(news.unused);
    if (news.unmapped && log_enabled(log_level::warning))
        log_line(log_level::warning,
                 "a durable buffer is not in the new context: " + escape_text(news.unmapped.message()));
    if (news.call && news.call->content && news.error && log_enabled(log_level::warning))
        log_line(log_level::warning,
                 "the elements of a resident are not shared between workers: " + escape_text(news.error.message()));
    if (news.call)
        complete(*news.call, news.error);
}

void device_core::drop_durable_call(durable_call& r)
{
    const any_ref unused = durable_.remove(r);
    if (context_ && unused.device != 0)
        context_->release(unused);
}

void device_core::end_durable_calls(const error_code& ec)
{
    while (durable_call* r = durable_.first_call()) {
        drop_durable_call(*r);
        complete(*r, ec);
    }
}

/// Ordinary buffers end with their context. Durable memory must be freed, but not before the requests that name it and
/// still wait for a context.
void device_core::release_without_context()
{
    if (durable_.empty())
        return releases_.clear();
    const request* const waiting = admission_.oldest();
    std::vector<std::shared_ptr<release_node>> later;
    for (auto& n : releases_)
        if (is_durable(n->ref)) {
            if (waiting && n->after >= waiting->sequence)
                later.push_back(std::move(n));
            else
                (void)durable_.release(n->ref);
        }
    releases_.clear();
    for (auto& n : later)
        releases_.push_back(std::move(n));
}

/// Replaces the refs of durable buffers in ops that are to be recorded.
error_code device_core::enter_graph(std::vector<listed_op>& ops)
{
    if (durable_.empty())
        return {};
    std::vector<bound_op> bound;
    for (listed_op& o : ops) {
        bound.push_back(o.record.bind(*o.info));
        // A release that waits for earlier requests has not reached the buffers yet.
        for (std::size_t f = 0; f < o.info->operands.size(); ++f) {
            const any_ref& ref = operand_of(bound.back(), f);
            if (is_durable(ref) &&
                std::ranges::any_of(releases_, [&](const auto& n) { return same_memory(n->ref, ref); }))
                return op_error(errc::released_ref, o.info->name,
                                {"the buffer of ", o.info->operands[f].name, " has been released"});
        }
    }
    return durable_.enter_graph(bound);
}

} // namespace coaccel::detail
