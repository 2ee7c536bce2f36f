#ifndef COACCEL_DEVICE_LOADED_PLAN_HPP
#define COACCEL_DEVICE_LOADED_PLAN_HPP

#include "device/common_states.hpp"
#include "device/instance_pool.hpp"
#include "device/kept_error.hpp"
#include "device/load_suspicion.hpp"
#include "device/plan_resources.hpp"
#include "device/poison_count.hpp"
#include "device/run_pace.hpp"
#include "device/shared_constants.hpp"
#include "plan/graph.hpp"

#include <coaccel/core/detail/mpsc_inbox.hpp>
#include <coaccel/core/detail/request.hpp>
#include <coaccel/device/plan_options.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace coaccel::detail {

class load_call;
class unload_call;

/// A plan on a device: its instances and buffers in the current context. Used in the turns of the device, except
/// for the constant members. It is the inbox message that unloads it when the last copy of its `plan` is gone.
class loaded_plan : public inbox_node, public plan_resources {
public:
    loaded_plan(plan_description what, const plan_options& how)
        : loaded_plan(set_plan{.name = {}, .plan = std::move(what), .states = {}}, how, nullptr)
    {}

    /// A plan of a set. `shared`: the states that it has in common with other plans; null if there are none.
    loaded_plan(const set_plan& what, const plan_options& how, std::shared_ptr<common_states> shared)
        : inbox_node(kind::plan_dropped), description(what.plan), data(*plan_access::data(description)), options(how),
          load_info(make_load_info(data)), repeatable(data.repeatable()), common(std::move(shared)),
          common_indices(what.states), poison(how.poison_limit), pace(how.suspect_after),
          pool(static_cast<std::size_t>(how.instances), common ? &common->waiting : nullptr),
          groups(data.over_buffers ? constant_groups{} : group_constants(data.constant_contents, packing::small_ones))
    {
        common_indices.resize(data.states.size(), own_state);
        for (std::size_t i = 0; i < data.states.size(); ++i) {
            const std::uint32_t shared_index = common_indices[i];
            durable_states.push_back(!rule_of(i)                 ? nullptr
                                     : shared_index == own_state ? std::make_shared<durable_state>()
                                                                 : common->durable(shared_index));
        }
        title.text = data.name.empty() ? "plan.run" : "plan " + data.name;
        title.key = hash(title.text);
        draws = std::ranges::any_of(
            data.ops, [](const listed_op& o) { return o.info->state && o.info->state(o.record.op.data()) != 0; });
        calls_users = std::ranges::any_of(data.ops, [](const listed_op& o) { return o.info->lib == library::user; });
    }

    /// A graph over these buffers.
    explicit loaded_plan(recorded_graph g)
        : loaded_plan(plan_access::make(std::move(g.plan)), plan_options{.instances = 1, .initial = 1})
    {
        buffers = std::move(g.buffers);
        const auto first_state = buffers.begin() + static_cast<std::ptrdiff_t>(data.constants.size());
        constants.assign(buffers.begin(), first_state);
        states.assign(first_state, buffers.end());
        title.text = "graph.run";
        title.key = hash(title.text);
    }

    const plan_description description;
    const plan_data& data;
    const plan_options options;
    const op_info load_info;
    const bool repeatable;
    /// Null for a plan that has no state in common with another.
    const std::shared_ptr<common_states> common;
    /// For each state: its index in `common`, or own_state.
    std::vector<std::uint32_t> common_indices;
    request_title title;
    /// Whether its ops change states of the context, such as random generators.
    bool draws = false;
    /// Whether it calls functions of plug-ins.
    bool calls_users = false;

    poison_count poison;
    run_pace pace;
    load_suspicion loads;
    /// Runs are refused. Read by any thread.
    std::atomic<bool> quarantined{false};
    /// Runs are refused because a durable state cannot be relied on. Read by any thread.
    std::atomic<bool> suspect{false};
    bool is_suspect() const noexcept { return suspect.load(std::memory_order_relaxed); }
    bool is_quarantined() const noexcept { return quarantined.load(std::memory_order_relaxed); }

    /// For each state: what outlives the contexts; null if the state ends with its context. Empty if the plan has left
    /// the device.
    std::vector<std::shared_ptr<durable_state>> durable_states;
    /// Of state i, if it is durable.
    std::optional<suspect_rule> rule_of(std::size_t i) const noexcept { return data.slots[data.states[i]].durable; }
    /// The first state because of which runs are refused; none: there is no such state.
    std::optional<std::size_t> first_refused() const noexcept
    {
        for (std::size_t i = 0; i < durable_states.size(); ++i)
            if (const auto& s = durable_states[i];
                s && (s->unusable || revival_of(*rule_of(i), s->trust.suspect()) == state_revival::refuse))
                return i;
        return std::nullopt;
    }

    /// Distinguishes the plans of a device.
    std::uint64_t number = 0;
    instance_pool pool;
    /// For a graph: the buffers that it uses.
    std::vector<any_ref> buffers;
    /// For a graph, from its loading on: its run.
    std::unique_ptr<graph_run> run;
    /// For a graph: the number of its runs that have been accepted and have not ended.
    std::size_t runs = 0;
    /// For a graph: its context is gone.
    bool stale = false;
    /// The call that waits for it, and for the other plans of its set; null if it has been answered.
    load_call* call = nullptr;
    /// Where the caller reads how far the load is. Belongs to the caller, and is null as soon as the call is answered.
    load_progress* progress = nullptr;
    /// What this plan has added to it. A load that was interrupted by the loss of its context begins again, and adds
    /// nothing until it is further than before.
    std::uint64_t reported_bytes = 0;
    std::size_t reported_instances = 0;
    /// Calls that wait for it to be unloaded.
    std::vector<unload_call*> unloads;
    /// It has no handles any more. It is closed when its runs have ended.
    bool dropped = false;
    /// Of its constants, in contexts that can share them.
    const constant_groups groups;
    /// For each of these groups: its memory, if workers share it. Belongs to the plan whatever becomes of the contexts.
    std::vector<std::shared_ptr<const shared_constant>> kept_constants;
    /// Runs are refused, and it is unloaded as soon as no run uses it.
    bool closing = false;
    /// It has left the device.
    bool gone = false;
    /// Why it could not be loaded in the current context; its runs end with this error.
    kept_error broken;
    /// No more instances are made in this context, because there is no memory for another.
    bool full = false;
    /// Set while it is in the inbox.
    std::shared_ptr<loaded_plan> self;

    /// The call is about to be answered.
    void leave_call() noexcept
    {
        call = nullptr;
        progress = nullptr;
    }

    /// The number of runs for which it is needed. A graph has no pool: a run that waited there could be overtaken by a
    /// later op on the same buffers.
    std::size_t running() const noexcept { return data.over_buffers ? runs : instances.size() - pool.free(); }

    /// A graph has its instance.
    void make_run()
    {
        const plan_instance& i = instances.front();
        const plan_run_op head{.memory = ref<std::uint8_t>::from_raw(i.memory), .instance = i.id, .chain = i.chain};
        run = std::make_unique<graph_run>(data, head, buffers);
    }
};

} // namespace coaccel::detail

#endif
