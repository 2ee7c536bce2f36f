#include "core/escape_text.hpp"
#include "plan/plan_parts.hpp"

namespace coaccel::detail {
namespace {

/// A string in quotes. The parts are on lines of their own.
std::string quoted(std::initializer_list<std::string_view> lines)
{
    std::string made = "\"";
    std::string_view separator;
    for (const std::string_view line : lines) {
        made += separator;
        separator = "\\n";
        for (const char c : escape_text(line)) {
            if (c == '"' || c == '\\')
                made += '\\';
            made += c;
        }
    }
    return made + '"';
}

/// The names of the nodes of a plan.
struct node_names {
    /// For a plan of a set: distinguishes its nodes from those of other plans.
    std::string prefix;
    /// For a plan of a set; see set_plan::states.
    std::vector<std::uint32_t> states;

    bool is_common(const plan_slot& s) const noexcept
    {
        return s.kind == slot_kind::state && s.index < states.size() && states[s.index] != own_state;
    }

    std::string slot(const plan_data& plan, std::size_t i) const
    {
        if (const plan_slot& s = plan.slots[i]; is_common(s))
            return common_state(states[s.index]);
        return prefix + "slot" + std::to_string(i);
    }

    std::string op(std::size_t i) const { return prefix + "op" + std::to_string(i + 1); }

    static std::string common_state(std::uint32_t i) { return "common" + std::to_string(i + 1); }
};

std::string slot_box(const std::string& node, const plan_slot& s)
{
    const std::string what =
        std::string(to_string(s.kind)) + " of " + std::to_string(s.count) + " " + std::string(to_string(s.type));
    return "    " + node + " [shape=box, label=" + quoted({s.name, what}) + "];\n";
}

std::string edge(const std::string& from, const std::string& to, std::string_view label)
{
    return "    " + from + " -> " + to + " [label=" + quoted({label}) + "];\n";
}

/// What is specific to this op, such as the name of its kernel.
std::string op_label(const plan_data& plan, std::size_t i)
{
    const listed_op& o = plan.ops[i];
    const std::string first = std::to_string(i + 1) + ": " + o.info->name;
    if (as_launch(o))
        return quoted({first, image_of(o).name});
    if (const auto* call = as_call(o))
        return quoted({first, call->function});
    return quoted({first});
}

/// Adds a plan to the texts of nodes and edges, which may be one text.
void add_plan(const plan_data& plan, const node_names& names, std::string& nodes, std::string& edges)
{
    for (std::size_t i = 0; i < plan.slots.size(); ++i)
        if (!names.is_common(plan.slots[i]))
            nodes += slot_box(names.slot(plan, i), plan.slots[i]);
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
        const listed_op& o = plan.ops[i];
        const bool captured = obstacle_of(o) == capture_obstacle::none;
        nodes += "    " + names.op(i) + " [shape=ellipse, " + (captured ? "" : "style=dashed, ") +
                 "label=" + op_label(plan, i) + "];\n";
        for (const op_field& f : o.info->operands) {
            const any_ref r = ref_of(o, f);
            if (has_none(f, r))
                continue;
            const std::string slot = names.slot(plan, r.slot);
            const access mode = mode_of(o, f);
            if (reads(mode))
                edges += edge(slot, names.op(i), f.name);
            if (writes(mode))
                edges += edge(names.op(i), slot, f.name);
        }
        for (const plan_binding& b : bindings_of(plan, i))
            edges += edge(names.slot(plan, b.slot), names.op(i), o.info->fields[b.field].name);
    }
}

/// `what` is the title of a graph whose plan or set has no name.
std::string graph_of(const std::string& name, std::string_view what, const std::string& body)
{
    return "digraph " + quoted({name.empty() ? what : name}) + " {\n" + body + "}\n";
}

} // namespace

std::string plan_graphviz(const plan_data& plan)
{
    std::string body;
    add_plan(plan, {}, body, body);
    return graph_of(plan.name, "plan", body);
}

std::string plan_set_graphviz(const plan_set_data& set)
{
    std::string clusters;
    std::vector<bool> drawn(set.users.size());
    // Outside the clusters, because an edge inside a cluster puts both its nodes there.
    std::string common;
    std::string edges;
    for (std::size_t k = 0; k < set.plans.size(); ++k) {
        const set_plan& p = set.plans[k];
        const plan_data& plan = *plan_access::data(p.plan);
        const node_names names{.prefix = "plan" + std::to_string(k + 1) + "_", .states = p.states};
        for (const std::uint32_t i : plan.states)
            if (const plan_slot& s = plan.slots[i]; names.is_common(s) && !drawn[p.states[s.index]]) {
                drawn[p.states[s.index]] = true;
                common += slot_box(names.slot(plan, i), s);
            }
        clusters += "    subgraph cluster" + std::to_string(k + 1) + " {\n    label=" + quoted({p.name}) + ";\n";
        add_plan(plan, names, clusters, edges);
        clusters += "    }\n";
    }
    return graph_of(set.name, "plan set", clusters + common + edges);
}

} // namespace coaccel::detail
