#include "device/standby_plans.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::detail {
namespace {

bool has_left(const loaded_plan& p) noexcept
{
    return p.closing || p.gone;
}

/// Whether the constants of the plan have yet to be filled by a context that can then share them.
bool fills_constants(const loaded_plan& p) noexcept
{
    const auto& groups = p.groups.all;
    for (std::size_t i = 0; i < groups.size(); ++i)
        if (groups[i].bytes >= shared_constants::least_bytes && (i >= p.kept_constants.size() || !p.kept_constants[i]))
            return true;
    return false;
}

/// After the loss of a context the device fills the constants, unless it cannot load the plan at all. Two contexts that
/// fill them at the same time would have two copies.
bool waits_for_device(const loaded_plan& p) noexcept
{
    return p.instances.empty() && !p.broken && fills_constants(p);
}

/// A plan that a call still waits for may turn out not to be loadable at all, so the device loads it first. The buffers
/// of a graph end with the current context.
bool is_wanted(const loaded_plan& p) noexcept
{
    return !has_left(p) && !p.loads.refused_on_standby() && !p.call && !p.data.over_buffers && !waits_for_device(p);
}

} // namespace

bool standby_plans::is_here(const loaded_plan& p) const noexcept
{
    return std::ranges::any_of(has_.copies, [&](const auto& c) { return c->plan.get() == &p; });
}

loaded_plan* standby_plans::next_to_load(const plan_list& plans) const noexcept
{
    for (const auto& p : plans.all())
        if (is_wanted(*p) && !is_here(*p))
            return p.get();
    return nullptr;
}

standby_plans::plan_copy* standby_plans::next_to_unload() const noexcept
{
    const auto found = std::ranges::find_if(has_.copies, [](const auto& c) { return has_left(*c->plan); });
    return found == has_.copies.end() ? nullptr : found->get();
}

bool standby_plans::has_next(const plan_list& plans) const noexcept
{
    return !pending() && (has_.loading || next_to_unload() || next_to_load(plans));
}

load_part* standby_plans::next(plan_list& plans, sharing can_share)
{
    if (pending())
        return nullptr;
    std::unique_ptr<load_part> part;
    if (!has_.loading) {
        if (plan_copy* c = next_to_unload()) {
            has_.unloading = c;
            part = std::make_unique<load_part>();
            // A copy that could not be loaded has no instance; the request only removes it in the order of the others.
            part->set(!c->resources.has_instance() ? plan_unload_op{}
                                                   : plan_unload_op{.instance = c->resources.last_instance().id,
                                                                    .chain = c->resources.last_instance().chain});
        } else if (loaded_plan* p = next_to_load(plans)) {
            const auto& all = plans.all();
            auto copy = std::make_unique<plan_copy>();
            copy->plan = *std::ranges::find(all, p, &std::shared_ptr<loaded_plan>::get);
            has_.loading = std::make_unique<plan_loading>(*p, copy->resources, has_.constants,
                                                          can_share == sharing::yes ? &plans.shared() : nullptr,
                                                          plans.next_instance(), plan_list::chain_of(*p, 0));
            has_.copies.push_back(std::move(copy));
        }
    }
    if (has_.loading)
        part = has_.loading->next();
    if (!part)
        return nullptr;
    part->standby = true;
    part->plan = has_.unloading ? has_.unloading->plan : has_.copies.back()->plan;
    has_.pending = part.release();
    return has_.pending;
}

void standby_plans::remove(const plan_copy& c) noexcept
{
    std::erase_if(has_.copies, [&](const auto& other) { return other.get() == &c; });
}

/// Adds to `unused` the common states of the plan that no other plan uses here.
void standby_plans::leave_common_states(const loaded_plan& plan, std::vector<any_ref>& unused)
{
    for (const std::uint32_t common : plan.common_indices) {
        const auto uses_it = [&](const auto& other) {
            return other->plan->common == plan.common && !other->resources.states.empty() &&
                   std::ranges::find(other->plan->common_indices, common) != other->plan->common_indices.end();
        };
        if (common == own_state || std::ranges::any_of(has_.copies, uses_it))
            continue;
        if (const any_ref last = plan.common->take_from_standby(common); last.device != 0)
            unused.push_back(last);
    }
}

standby_plans::news standby_plans::finished(load_part& part, const error_code& ec)
{
    const std::unique_ptr<load_part> own(&part);
    news n;
    has_.pending = nullptr;
    if (plan_copy* c = std::exchange(has_.unloading, nullptr)) {
        if (c->resources.has_instance())
            n.unload_error = ec;
        n.unused = take_buffers(c->resources, *c->plan, has_.constants);
        const auto plan = c->plan;
        remove(*c);
        leave_common_states(*plan, n.unused);
        // There may be room for the others.
        std::erase_if(has_.copies, [](const auto& other) { return other->failed; });
        return n;
    }
    // The context was forgotten meanwhile.
    if (!has_.loading)
        return n;
    plan_loading& loading = *has_.loading;
    const bool ops_ran = loading.loads_instance();
    loading.finished(part, ec);
    loaded_plan& p = loading.plan();
    if (ops_ran && loading.error() && is_context_lost(loading.error()))
        n.lost = &p;
    if (loading.unshared()) {
        n.unshared = &p;
        n.unshared_error = loading.unshared();
    }
    if (!loading.error() && !loading.done() && !has_left(p))
        return n;
    const bool failed = loading.error() && !is_context_lost(loading.error());
    if (failed) {
        n.failed = &p;
        n.error = loading.error();
    }
    const bool made = loading.done();
    n.unused = loading.end();
    has_.loading.reset();
    plan_copy& c = *has_.copies.back();
    if (failed)
        c.failed = true;
    else if (made)
        p.loads.loaded_on_standby();
    else
        remove(c);
    return n;
}

std::size_t standby_plans::loaded() const noexcept
{
    return static_cast<std::size_t>(
        std::ranges::count_if(has_.copies, [](const auto& c) { return c->resources.has_instance(); }));
}

void standby_plans::forget_context() noexcept
{
    load_part* const pending = has_.pending;
    for (const auto& c : has_.copies)
        if (c->plan->common)
            c->plan->common->forget(context_place::standby);
    has_ = {};
    has_.pending = pending;
}

} // namespace coaccel::detail
