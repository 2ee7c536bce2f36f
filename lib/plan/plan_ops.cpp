#include <coaccel/plan/detail/plan_ops.hpp>

namespace coaccel::detail {

const plan_slot* graph_slot_of(const plan_data& p, std::size_t i) noexcept
{
    const plan_load_operands at(p);
    if (!p.over_buffers || i < at.constants || i >= at.spare_states)
        return nullptr;
    return &p.slots[i < at.states ? p.constants[i - at.constants] : p.states[i - at.states]];
}

op_info make_load_info(const plan_data& p)
{
    const plan_load_operands at(p);
    op_info made;
    made.name = "plan.load";
    made.id = plan_load_id;
    made.size = static_cast<std::uint32_t>(sizeof(plan_load_head) + at.count * sizeof(any_ref));
    made.reply_size = sizeof(plan_loaded);
    made.lib = library::plan;
    made.check = [](const void*) { return error_code(); };
    made.state = [](const void* op) noexcept { return static_cast<const plan_load_head*>(op)->chain; };
    made.accepts = [](const void*, const void* reply) { return static_cast<const plan_loaded*>(reply)->recorded <= 1; };
    for (std::size_t i = 0; i < at.count; ++i) {
        op_field field{"memory",           static_cast<std::uint32_t>(sizeof(plan_load_head) + i * sizeof(any_ref)),
                       sizeof(any_ref),    op_field::kind::operand,
                       access::read_write, dtype::u8};
        if (i >= at.states)
            field.name = "state";
        else if (i >= at.constants) {
            field.name = "constant";
            field.mode = access::read;
        }
        if (const plan_slot* s = graph_slot_of(p, i)) {
            field.name = s->name;
            field.type = s->type;
            // The ops run for the first time on a copy.
            field.mode = access::read;
        }
        made.operands.push_back(field);
    }
    made.fields = made.operands;
    if (p.over_buffers)
        made.name = p.name;
    return made;
}

} // namespace coaccel::detail
