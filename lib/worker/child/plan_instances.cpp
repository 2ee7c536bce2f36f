#include "worker/child/plan_instances.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <utility>

namespace coaccel::worker {
namespace {

/// Whether the memory is at least as large as the plan says; the context checks that it exists.
bool matches(const detail::plan_data& p, const std::vector<any_ref>& refs) noexcept
{
    const detail::plan_load_operands at(p);
    if (refs.size() != at.count || refs[detail::plan_load_operands::instance].size < p.instance_bytes)
        return false;
    for (std::size_t i = at.constants; i < at.spare_states; ++i)
        if (const auto* s = graph_slot_of(p, i); s && (refs[i].type != s->type || refs[i].size < s->count))
            return false;
    for (std::size_t i = 0; i < p.constants.size(); ++i)
        if (!p.over_buffers && refs[at.constants + i].size < p.slots[p.constants[i]].bytes())
            return false;
    for (std::size_t i = 0; i < p.states.size(); ++i) {
        const std::uint64_t bytes = p.slots[p.states[i]].bytes();
        if ((!p.over_buffers && refs[at.states + i].size < bytes) || refs[at.spare_states + i].size < bytes)
            return false;
    }
    return true;
}

} // namespace

error_code no_instance(std::string_view op, std::uint64_t instance) noexcept
{
    return detail::op_error(errc::invalid_argument, op, {"instance ", instance, " is not loaded"});
}

bool plan_instances::add(std::uint64_t instance, entry made)
{
    if (entries_.contains(instance) || !matches(*made.plan, made.refs))
        return false;
    for (const any_ref& r : made.refs)
        ++buffers_[key(r)].instances;
    if (made.plan->over_buffers) {
        const detail::plan_load_operands at(*made.plan);
        const detail::plan_run_op head{
            .memory = ref<std::uint8_t>::from_raw(made.memory()), .instance = instance, .chain = made.chain};
        made.run = std::make_shared<detail::graph_run>(
            *made.plan, head, std::span(made.refs).subspan(at.constants, at.spare_states - at.constants));
    }
    entries_.emplace(instance, std::move(made));
    return true;
}

const plan_instances::entry* plan_instances::find(std::uint64_t instance) const noexcept
{
    const auto found = entries_.find(instance);
    return found == entries_.end() || found->second.unloading ? nullptr : &found->second;
}

error_code plan_instances::begin_unload(const detail::plan_unload_op& op)
{
    const auto found = entries_.find(op.instance);
    if (found == entries_.end() || found->second.unloading)
        return no_instance(detail::plan_unload_op::name, op.instance);
    if (found->second.chain != op.chain)
        return errc::worker_corrupted;
    found->second.unloading = true;
    return {};
}

void plan_instances::unload_failed(std::uint64_t instance) noexcept
{
    const auto found = entries_.find(instance);
    if (found != entries_.end())
        found->second.unloading = false;
}

std::vector<any_ref> plan_instances::remove(std::uint64_t instance)
{
    std::vector<any_ref> free;
    const auto found = entries_.find(instance);
    if (found == entries_.end())
        return free;
    for (const any_ref& r : found->second.refs) {
        const auto used = buffers_.find(key(r));
        if (--used->second.instances > 0)
            continue;
        if (used->second.released)
            free.push_back(r);
        buffers_.erase(used);
    }
    entries_.erase(found);
    return free;
}

bool plan_instances::delay_release(const any_ref& buffer)
{
    const auto used = buffers_.find(key(buffer));
    if (used == buffers_.end())
        return false;
    used->second.released = true;
    return true;
}

} // namespace coaccel::worker
