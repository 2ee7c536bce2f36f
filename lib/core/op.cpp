#include <coaccel/core/stored_reply.hpp>
#include <coaccel/core/tune.hpp>

#include <algorithm>

namespace coaccel {

std::string_view to_string(capture_obstacle o) noexcept
{
    switch (o) {
    case capture_obstacle::none: return "none";
    case capture_obstacle::reply: return "its reply belongs to one run";
    case capture_obstacle::state: return "it uses a state of the host";
    case capture_obstacle::host_work: return "it is not only work on a stream";
    case capture_obstacle::unknown_code: return "it calls a function of other code";
    }
    return "unknown";
}

namespace detail {

op_info make_info(const op_constants& c)
{
    op_info info;
    info.name = c.name;
    if (c.type_count > 0)
        info.name.append("<").append(to_string(c.value_type));
    if (c.type_count > 1)
        info.name.append(" from ").append(to_string(c.source_type));
    if (c.type_count > 2)
        info.name.append(" and ").append(to_string(c.second_type));
    if (c.type_count > 0)
        info.name.append(">");
    info.id = hash(info.name);
    info.size = c.size;
    info.reply_size = c.reply_size;
    info.lib = c.lib;
    info.role = c.role;
    info.pure = c.pure;
    info.may_overlap = c.may_overlap;
    info.obstacle = c.obstacle;
    info.obstacle_of = c.obstacle_of;
    info.check = c.check;
    info.overwrites = c.overwrites;
    info.accepts = c.accepts;
    info.state = c.state;
    info.work = c.work;
    if (c.describe) {
        c.describe(info);
        return info;
    }
    info.fields.reserve(c.fields.size());
    for (const placed_field& p : c.fields) {
        op_field field = p.field;
        field.offset =
            static_cast<std::uint32_t>(static_cast<const char*>(p.place) - static_cast<const char*>(c.sample));
        if (std::ranges::find(c.scalars, field.name) != c.scalars.end())
            field.variable = op_field::parameter::by_address;
        info.id = hash(field.name, info.id ^ (std::uint64_t(field.offset) << 16 | field.size));
        if (field.what == op_field::kind::operand)
            info.operands.push_back(field);
        info.fields.push_back(field);
    }
    return info;
}

std::string numbers_text(std::span<const std::uint64_t> numbers)
{
    std::string made = "[";
    for (std::size_t i = 0; i < numbers.size(); ++i)
        made.append(i == 0 ? "" : ", ").append(std::to_string(numbers[i]));
    return made + "]";
}

void describe_stored_reply(op_info& info, const op_info& own, std::size_t offset, dtype type)
{
    info.name = own.name + " stored";
    info.id = hash("stored reply", own.id);
    info.fields = own.fields;
    info.operands = own.operands;
    const op_field to{
        "dst", static_cast<std::uint32_t>(offset), sizeof(any_ref), op_field::kind::operand, access::write, type};
    info.fields.push_back(to);
    info.operands.push_back(to);
}

void describe_tune(op_info& info, const op_info& own)
{
    info.name = own.name + " tuned";
    info.id = hash("tune", own.id);
    info.fields = own.fields;
    info.operands = own.operands;
    // The results of the measured ops go to other memory.
    for (auto* list : {&info.fields, &info.operands})
        for (op_field& f : *list)
            f.mode = access::read;
}

} // namespace detail
} // namespace coaccel
