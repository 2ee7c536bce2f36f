#include "device/plan_list.hpp"

#include "device/standby_plans.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace coaccel::detail {
namespace {

/// How many instances it should have now.
std::size_t wanted_instances(const loaded_plan& p) noexcept
{
    const auto most = static_cast<std::size_t>(p.options.instances);
    const auto initial = static_cast<std::size_t>(p.options.initial);
    if (p.closing || p.broken || p.full || p.loads.refused())
        return 0;
    return p.pool.is_short() ? most : std::min(initial, most);
}

/// Whether an instance of the plan, or the plan itself, can be unloaded.
bool can_unload(const std::shared_ptr<loaded_plan>& p) noexcept
{
    return p->closing && p->running() == 0;
}

/// The plan leaves the device. Its handles may exist for any time, so the memory that it owns is given up here.
void leave(loaded_plan& p) noexcept
{
    p.gone = true;
    p.kept_constants.clear();
    p.durable_states.clear();
}

/// Adds to `unused` the common states that no other plan uses.
void leave_common_states(const loaded_plan& p, std::vector<any_ref>& unused)
{
    for (const std::uint32_t common : p.common_indices)
        if (common != own_state)
            if (const any_ref last = p.common->leave(common); last.device != 0)
                unused.push_back(last);
}

} // namespace

bool plan_list::has_calls() const noexcept
{
    return std::ranges::any_of(all_, [](const auto& p) { return p->call || !p->unloads.empty(); });
}

load_part* plan_list::next(sharing can_share)
{
    if (pending_)
        return nullptr;
    auto made = make_next(can_share);
    if (!made)
        return nullptr;
    made->plan = *find(loading_ ? loading_->plan() : *unloading_);
    pending_ = made.get();
    return made.release();
}

std::unique_ptr<load_part> plan_list::make_next(sharing can_share)
{
    if (loading_)
        return loading_->next();
    for (const auto& p : all_)
        if (can_unload(p))
            return unload_one(*p);
    loaded_plan* p = next_to_extend();
    if (!p)
        return nullptr;
    loading_ = std::make_unique<plan_loading>(*p, *p, constants_, can_share == sharing::yes ? &shared_ : nullptr,
                                              next_instance(), chain_of(*p, p->instances.size()));
    return loading_->next();
}

std::uint64_t plan_list::chain_of(const loaded_plan& p, std::size_t instances) noexcept
{
    // The engine does not see the generators that ops inside a plan change. The same plan may be loaded twice, so all
    // plans with generators are on one chain.
    if (p.common ? p.common->draws : p.draws)
        return 1;
    // The runs of plans that have states in common must not overlap, so all their instances are on one chain.
    if (p.common)
        return 1 + p.common->number % chains;
    // So are those of a plan with states of its own.
    return 1 + (p.number + (p.data.has_state() ? 0 : instances)) % chains;
}

bool plan_list::has_next() const noexcept
{
    return !pending_ && (loading_ || next_to_extend() || std::ranges::any_of(all_, can_unload));
}

bool plan_list::unloads_soon() const noexcept
{
    // The first instance may have many constants.
    const bool loads_first = loading_ && loading_->plan().instances.empty();
    return !loads_first && std::ranges::any_of(all_, can_unload);
}

bool plan_list::next_is_extension() const noexcept
{
    const loaded_plan* const p = loading_ ? &loading_->plan() : next_to_extend();
    return p && !p->instances.empty() && !unloads_soon();
}

/// First those that cannot run at all, so that after the loss of a context every plan can run soon.
loaded_plan* plan_list::next_to_extend() const noexcept
{
    loaded_plan* found = nullptr;
    for (const auto& p : all_) {
        if (p->instances.size() >= wanted_instances(*p))
            continue;
        if (p->instances.empty())
            return p.get();
        if (!found)
            found = p.get();
    }
    return found;
}

std::unique_ptr<load_part> plan_list::unload_one(loaded_plan& p)
{
    unloading_ = &p;
    auto part = std::make_unique<load_part>();
    if (!p.has_instance())
        // Nothing to unload; the request only ends the plan in the order of the others.
        part->set(plan_unload_op{});
    else
        part->set(plan_unload_op{.instance = p.last_instance().id, .chain = p.last_instance().chain});
    return part;
}

std::vector<std::shared_ptr<loaded_plan>>::iterator plan_list::find(const loaded_plan& p) noexcept
{
    return std::ranges::find(all_, &p, &std::shared_ptr<loaded_plan>::get);
}

std::shared_ptr<loaded_plan> plan_list::remove(loaded_plan& p, std::vector<any_ref>& unused)
{
    leave_common_states(p, unused);
    const auto found = find(p);
    auto taken = std::move(*found);
    all_.erase(found);
    leave(*taken);
    return taken;
}

plan_list::news plan_list::finished(load_part& part, const error_code& ec)
{
    const std::unique_ptr<load_part> own(&part);
    pending_ = nullptr;
    news n;
    // The context was closed meanwhile.
    if (!unloading_ && !loading_)
        return n;
    if (unloading_) {
        loaded_plan& p = *std::exchange(unloading_, nullptr);
        if (p.has_instance())
            n.unload_error = ec;
        if (!p.instances.empty()) {
            n.unused.push_back(p.instances.back().memory);
            p.instances.pop_back();
        }
        p.pool.clear();
        for (std::uint32_t i = 0; i < p.instances.size(); ++i)
            p.pool.add(i);
        if (!p.instances.empty())
            return n;
        const auto rest = take_buffers(p, p, constants_);
        n.unused.insert(n.unused.end(), rest.begin(), rest.end());
        n.left = remove(p, n.unused);
        return n;
    }
    const bool ops_ran = loading_->loads_instance();
    loading_->finished(part, ec);
    const error_code why = loading_->error();
    const bool made = loading_->done();
    loaded_plan& p = loading_->plan();
    if (loading_->unshared()) {
        n.unshared = &p;
        n.unshared_error = loading_->unshared();
    }
    n.unload_error = loading_->unload_error();
    if (loading_->remade()) {
        n.remade = &p;
        n.remade_error = loading_->remade();
    }
    if (!why && !made && !p.closing)
        return n;
    n.unused = loading_->end();
    loading_.reset();
    if (made) {
        // It was begun on a standby that has taken over. It is loaded again over the durable states.
        if (!p.prepared)
            n.extended = &p;
        return n;
    }
    if (!why)
        return n;
    // A plan is loaded into the next context; a graph ends with its buffers.
    if (is_context_lost(why) && !p.data.over_buffers) {
        n.lost = ops_ran ? &p : nullptr;
        return n;
    }
    n.error = why;
    if (!p.instances.empty()) {
        p.full = true;
        n.limited = &p;
        return n;
    }
    if (p.call) {
        n.left = remove(p, n.unused);
        return n;
    }
    p.broken = why;
    n.broken = &p;
    return n;
}

std::vector<std::shared_ptr<loaded_plan>> plan_list::forget_context() noexcept
{
    loading_.reset();
    unloading_ = nullptr;
    constants_.clear();
    std::vector<std::shared_ptr<loaded_plan>> left;
    for (auto it = all_.begin(); it != all_.end();) {
        loaded_plan& p = **it;
        static_cast<plan_resources&>(p) = {};
        p.broken = {};
        p.full = false;
        if (p.common)
            p.common->forget(context_place::current);
        p.stale = p.data.over_buffers;
        if (!p.closing && !p.stale) {
            ++it;
            continue;
        }
        std::vector<any_ref> none;
        leave_common_states(p, none);
        leave(p);
        left.push_back(std::move(*it));
        it = all_.erase(it);
    }
    return left;
}

std::vector<loaded_plan*> plan_list::adopt(standby_plans& standby)
{
    BOOST_ASSERT(!pending_ && !loading_ && !unloading_);
    auto taken = standby.take();
    constants_ = std::move(taken.constants);
    loading_ = std::move(taken.loading);
    pending_ = taken.pending;
    if (pending_)
        pending_->standby = false;
    std::vector<loaded_plan*> usable;
    for (const auto& copy : taken.copies) {
        loaded_plan* p = copy->plan.get();
        if (p->common)
            p->common->adopt_standby();
        if (p->gone) {
            // It was unloaded before its copy was. A plan without handles replaces it until the copy is unloaded.
            auto last = std::make_shared<loaded_plan>(
                set_plan{.name = {}, .plan = p->description, .states = p->common_indices}, p->options, p->common);
            for (const std::uint32_t common : p->common_indices)
                if (common != own_state)
                    p->common->join(common);
            last->closing = true;
            p = last.get();
            for (std::uint32_t i = 0; i < copy->resources.instances.size(); ++i)
                p->pool.add(i);
            add(std::move(last));
        } else if (!copy->resources.instances.empty()) {
            usable.push_back(p);
        }
        static_cast<plan_resources&>(*p) = std::move(copy->resources);
        if (loading_ && &loading_->plan() == copy->plan.get())
            loading_->move_to(*p, *p, constants_);
        if (taken.unloading == copy.get())
            unloading_ = p;
    }
    return usable;
}

void plan_list::distrust_shared() noexcept
{
    shared_.discard_all();
    for (const auto& p : all_)
        p->kept_constants.clear();
}

std::uint64_t plan_list::durable_bytes() const
{
    std::set<const durable_state*> all;
    std::uint64_t sum = 0;
    for (const auto& p : all_)
        for (const auto& s : p->durable_states)
            if (s && s->memory && all.insert(s.get()).second)
                sum += s->memory->bytes;
    return sum;
}

std::shared_ptr<loaded_plan> plan_list::take(loaded_plan& p) noexcept
{
    BOOST_ASSERT(!pending_ && !loading_ && !unloading_);
    std::vector<any_ref> none;
    return remove(p, none);
}

std::vector<std::shared_ptr<loaded_plan>> plan_list::take_all() noexcept
{
    for (const auto& p : all_)
        leave(*p);
    return std::exchange(all_, {});
}

} // namespace coaccel::detail
