#include "device/device_core_nodes.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <string>
#include <utility>

// Graphs: plans over existing buffers. They are loaded and unloaded as plans are. Their runs are ordinary requests,
// because they must keep their place among other ops on the same buffers.
namespace coaccel::detail {
namespace {

/// In place of the run of a graph that does not exist.
const plan_run_op no_run{};

/// Names the first op that uses the buffer.
error_code is_released(const plan_data& graph, std::size_t buffer)
{
    const auto uses = [&](const listed_op& o, const op_field& f) {
        const any_ref r = ref_of(o, f);
        if (has_none(f, r))
            return false;
        const plan_slot& s = graph.slots[r.slot];
        return buffer == s.index + (s.kind == slot_kind::state ? graph.constants.size() : 0);
    };
    for (std::size_t i = 0; i < graph.ops.size(); ++i)
        for (const op_field& f : graph.ops[i].info->operands)
            if (uses(graph.ops[i], f))
                return op_error(
                    errc::released_ref, graph.name,
                    {"the buffer of ", f.name, " of op ", i + 1, " (", graph.ops[i].info->name, ") has been released"});
    return op_error(errc::released_ref, graph.name, {"one of its buffers has been released"});
}

} // namespace

graph_call::graph_call(const core_ptr& core, const std::shared_ptr<plan_handle>& g, const exec_options& how)
{
    options = how;
    graph = this;
    bound_ = {.info = &info_of<plan_run_op>(), .op = &no_run};
    ops = {&bound_, 1};
    if (!g) {
        refused_ = op_error(errc::invalid_argument, "graph", {"it is empty"});
        return;
    }
    plan_ = g->plan;
    title = &plan_->title;
    if (g->core != core)
        refused_ = op_error(errc::wrong_device, plan_->data.name, {"it belongs to another device"});
    else
        bound_ = plan_->run->bind();
}

graph_call::~graph_call() = default;

result<std::shared_ptr<loaded_plan>> device_core::make_graph(load_call& r)
{
    const std::string name = "graph " + std::to_string(++graphs_recorded_);
    if (auto ec = enter_graph(op_list_access::ops(*r.recorded)))
        return ec;
    BOOST_OUTCOME_TRY(auto recorded, record_graph(std::move(op_list_access::ops(*r.recorded)), name));
    // A release that waits for earlier requests has not reached the context yet.
    for (std::size_t i = 0; i < recorded.buffers.size(); ++i)
        if (std::ranges::any_of(releases_, [&](const auto& n) { return same_memory(n->ref, recorded.buffers[i]); }))
            return is_released(*recorded.plan, i);
    auto made = std::make_shared<loaded_plan>(std::move(recorded));
    held_.add(made->buffers);
    return made;
}

/// A buffer that a graph uses is released after the graph.
void device_core::release(const any_ref& buffer)
{
    const any_ref here = is_durable(buffer) ? durable_.release(buffer) : buffer;
    if (here.device != 0 && !held_.delay_release(here))
        context_->release(here);
}

/// Why a run of a graph cannot be accepted.
error_code device_core::check_run(const graph_call& r) const noexcept
{
    if (r.refused())
        return r.refused();
    const loaded_plan& p = *r.plan();
    if (p.stale)
        return op_error(errc::stale_ref, p.data.name, {"the context of its buffers is gone"});
    if (p.gone || p.closing)
        return op_error(errc::invalid_argument, p.data.name, {"it has been released"});
    return {};
}

/// Why a request cannot be accepted.
error_code device_core::refusal_of(const request& r) const noexcept
{
    if (r.graph)
        return check_run(*r.graph);
    return r.pool ? check_run(static_cast<const run_call&>(r)) : error_code();
}

/// The request was accepted. A graph is not released before its runs have ended.
void device_core::begin_run(request& r) noexcept
{
    if (!r.graph)
        return;
    r.graph->counted = true;
    ++r.graph->plan()->runs;
}

void device_core::end_run(request& r) noexcept
{
    if (r.graph && std::exchange(r.graph->counted, false))
        --r.graph->plan()->runs;
}

} // namespace coaccel::detail
