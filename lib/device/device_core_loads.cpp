#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Plans whose loading ends contexts.
namespace coaccel::detail {
namespace {

/// Null: the plan has left the device.
loaded_plan* find_plan(const plan_list& plans, std::uint64_t number) noexcept
{
    const auto found = std::ranges::find(plans.all(), number, [](const auto& p) { return p->number; });
    return found == plans.all().end() ? nullptr : found->get();
}

} // namespace

/// A context has died of a fault while a plan was being loaded. Returns how many earlier losses have the same cause;
/// nothing: the cause may be another request.
std::optional<std::size_t> device_core::judge_load(const load_isolation::lost_load& lost, const error_code& why)
{
    loaded_plan* const p = find_plan(plans_, lost.plan);
    if (!lost.alone) {
        if (p)
            p->loads.lost(now_);
        return std::nullopt;
    }
    inquiry_.explained();
    ++convicted_;
    // Its caller has given it up.
    if (!p)
        return 0;
    trace_.convicted(p->title.text, now_);
    const std::size_t earlier = p->loads.lost_alone(now_);
    if (p->loads.refused())
        refuse_load(*p, why);
    else if (log_enabled(log_level::warning))
        log_line(log_level::warning, escape_text(p->title.text) + ": loading it ended the context while it was alone");
    return earlier;
}

/// The plan is not loaded any more. Its first load ends with an error; later, it is quarantined. Further loads of the
/// same content are refused for a while.
void device_core::refuse_load(loaded_plan& p, const error_code& why)
{
    const content_id content = p.description.id();
    const auto window = std::chrono::duration_cast<std::chrono::seconds>(refused_loads_.add(content, now_));
    if (log_enabled(log_level::warning))
        log_line(log_level::warning,
                 escape_text(p.title.text) + ": async_load is refused for " + std::to_string(window.count()) +
                     " s, because loading it ends contexts; device::async_revive permits it at once");
    if (!p.call) {
        quarantine(p);
        while (request* r = admission_.pop(p.pool))
            complete(*r, is_quarantined(p));
        return end_refused_loads(content);
    }
    const bool one_of_set = p.call->made.size() > 1;
    const auto ec = op_error(errc::context_lost, one_of_set ? std::string_view("async_load") : p.title.text,
                             {"loading it ended the context ", load_suspicion::most_losses,
                              " times while nothing else was on it: ", why.message()});
    if (log_enabled(log_level::error))
        log_line(log_level::error, "not loaded: " + escape_text(ec.message()));
    const auto left = plans_.take(p);
    end_plan(*left, ec);
    end_refused_loads(content);
}

/// Loads of this content that are waiting would cost as many contexts as the one that was refused.
void device_core::end_refused_loads(const content_id& content)
{
    std::vector<std::shared_ptr<loaded_plan>> waiting;
    std::ranges::copy_if(plans_.all(), std::back_inserter(waiting),
                         [&](const auto& p) { return p->call && p->description.id() == content; });
    for (const auto& p : waiting) {
        const auto ec = is_refused(*p);
        // For a set, too: the message names the plan already.
        if (!p->call->failure)
            p->call->failure = ec;
        plans_.take(*p);
        end_plan(*p, ec);
    }
}

/// Why the plan must not be loaded yet; empty: it may be.
error_code device_core::is_refused(const loaded_plan& p) const noexcept
{
    const auto left = refused_loads_.left(p.description.id(), now_);
    if (left == refused_loads::duration::zero())
        return {};
    return op_error(errc::plan_quarantined, "async_load",
                    {p.title.text, " is refused for another ", std::chrono::ceil<std::chrono::seconds>(left).count(),
                     " s, because loading it ended the context of the device ", load_suspicion::most_losses,
                     " times while nothing else was on it; device::async_revive permits it at once"});
}

/// Why the call is refused, because of one of its plans; empty: it is not.
error_code device_core::find_refused(const load_call& r) const noexcept
{
    for (const auto& p : r.made)
        if (const auto ec = is_refused(*p))
            return ec;
    return {};
}

/// All plans of the call are loaded.
void device_core::permit_loads(const load_call& r) noexcept
{
    for (const auto& p : r.made)
        refused_loads_.forget(p->description.id());
}

/// The standby is lost. Nothing else was on it than the load that it was at.
void device_core::judge_standby_load(loss_cause cause)
{
    loaded_plan* const p = find_plan(plans_, std::exchange(lost_on_standby_, 0));
    if (!p || cause != loss_cause::fault)
        return;
    p->loads.lost_standby(now_);
    if (p->loads.refused_on_standby() && log_enabled(log_level::warning))
        log_line(log_level::warning,
                 escape_text(p->title.text) + ": loading it ended several standbys, so it is loaded after a take-over");
}

/// A suspect plan that waits for requests that were started before, or takes very long itself, must not keep everything
/// else from the device.
void device_core::end_long_load()
{
    if (load_isolation_.expire(now_) && log_enabled(log_level::warning))
        log_line(log_level::warning, "a plan is loaded alone because a context has died while it was being loaded, and "
                                     "takes long; others start beside it now");
}

} // namespace coaccel::detail
