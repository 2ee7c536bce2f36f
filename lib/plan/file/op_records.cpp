#include "plan/file/op_records.hpp"

#include "core/escape_text.hpp"
#include "plan/file/known_ops.hpp"
#include "plan/file/packed_arguments.hpp"

#include <algorithm>

namespace coaccel::detail {

// --- writing ------------------------------------------------------------------------------------------------------

error_code not_savable(const plan_data& plan, std::size_t at, std::initializer_list<message_part> parts)
{
    return op_error(errc::not_savable,
                    plan_label(plan.name) + ": op " + std::to_string(at + 1) + " (" + plan.ops[at].info->name + ")",
                    parts);
}

error_code op_writer::write(std::size_t at)
{
    const listed_op& o = plan_.ops[at];
    out_.begin_record();
    out_["op"].text(o.info->name);
    const op_field* unwritten = nullptr;
    if (const auto* launch = as_launch(o)) {
        out_["kernel"].number(kernels_.at(launch->kernel));
        write_extent("grid", launch->shape.grid);
        write_extent("block", launch->shape.block);
        out_["shared_bytes"].number(launch->shape.shared_bytes);
        unwritten = write_arguments(out_, values_, o, {launch->arguments(), launch->count});
    } else if (const auto* call = as_call(o)) {
        out_["function"].text(call->function);
        if (call->version != 0)
            out_["version"].number(call->version);
        unwritten = write_arguments(out_, values_, o, {call->arguments(), call->count});
    } else if (auto ec = write_fields(at))
        return ec;
    if (unwritten)
        return not_savable(plan_, at, {unwritten->name, " has a type that a file cannot describe"});
    write_parameters(at);
    if (std::ranges::binary_search(plan_.marked_pure, static_cast<std::uint32_t>(at)))
        out_["pure"].boolean(true);
    out_.end();
    return {};
}

error_code op_writer::write_fields(std::size_t at)
{
    const listed_op& o = plan_.ops[at];
    const known_op* const known = find_known_op(o.info->name);
    if (!known || known->info->id != o.info->id)
        return not_savable(plan_, at, {"it is not an operation of the library"});
    out_["fields"].begin_record();
    for (const op_field& f : o.info->fields) {
        if (f.what != op_field::kind::operand) {
            out_[f.name];
            values_.value(f, field_data(o, f));
        } else if (const any_ref r = ref_of(o, f); !is_unused_element(f, r)) {
            out_[f.name];
            values_.operand(f, r);
        }
    }
    out_.end();
    return {};
}

/// The fields whose values are parameters.
void op_writer::write_parameters(std::size_t at)
{
    const auto bound = bindings_of(plan_, at);
    const auto is_parameter = [this](const plan_binding& b) { return !is_fixed_scalar(plan_, b.slot); };
    if (std::ranges::none_of(bound, is_parameter))
        return;
    out_["parameters"].begin_record();
    for (const plan_binding& b : bound)
        if (is_parameter(b))
            out_[plan_.ops[at].info->fields[b.field].name].number(b.slot);
    out_.end();
}

void op_writer::write_extent(std::string_view name, const jit::dim3& d)
{
    out_[name].begin_record();
    out_["x"].number(d.x);
    out_["y"].number(d.y);
    out_["z"].number(d.z);
    out_.end();
}

// --- reading ------------------------------------------------------------------------------------------------------

bool op_reader::read(const node& record, std::size_t number, op_parts& made)
{
    std::string name;
    record_fields from(record, problem_);
    if (!from.get("op", name))
        return false;
    problem_.where = "op " + std::to_string(number) + " (" + escape_text(name.substr(0, 100)) + ")";
    const bool complete = name == "jit.launch"    ? read_launch(from, made.op)
                          : name == "plugin.call" ? read_call(from, made.op)
                                                  : read_known(from, name, made.op);
    return complete && read_parameters(from, *made.op.info, made.bound) &&
           (!from.has("pure") || from.get("pure", made.marked_pure)) && from.done();
}

bool op_reader::read_parameters(record_fields& from, const op_info& info, std::vector<bound_field>& bound)
{
    if (!from.has("parameters"))
        return true;
    const node* const record = from.get("parameters", node_kind::record);
    if (!record)
        return false;
    record_fields slots(*record, problem_);
    for (const node& n : record->items) {
        const auto found = std::ranges::find(info.fields, n.name, &op_field::name);
        if (found == info.fields.end())
            return problem_.set(errc::unsupported_op, {"this version of the library does not know its field ",
                                                       escape_text(n.name.substr(0, 100))});
        // The builder checks the rest.
        any_ref slot{.device = plan_device, .generation = builder_};
        if (!slots.get(n.name, slot.slot))
            return false;
        bound.push_back({found->offset, slot});
    }
    return slots.done();
}

bool op_reader::read_known(record_fields& from, const std::string& name, listed_op& made)
{
    const known_op* const known = find_known_op(name);
    if (!known)
        return problem_.set(errc::unsupported_op, {"this version of the library does not know the operation"});
    const node* const fields = from.get("fields", node_kind::record);
    if (!fields)
        return false;
    made.info = known->info;
    made.record.op = known->defaults;
    auto* const to = reinterpret_cast<std::byte*>(made.record.op.data());
    std::vector<bool> seen(known->info->fields.size());
    for (const node& value : fields->items) {
        const auto found = std::ranges::find(known->info->fields, value.name, &op_field::name);
        if (found == known->info->fields.end())
            return problem_.set(errc::unsupported_op, {"this version of the library does not know its field ",
                                                       escape_text(value.name.substr(0, 100))});
        const auto i = static_cast<std::size_t>(found - known->info->fields.begin());
        if (seen[i])
            return problem_.invalid({found->name, " is there twice"});
        seen[i] = true;
        if (!values_.read(value, *found, to + found->offset))
            return false;
    }
    return true;
}

bool op_reader::read_extent(record_fields& from, std::string_view name, jit::dim3& made)
{
    const node* const record = from.get(name, node_kind::record);
    if (!record)
        return false;
    record_fields fields(*record, problem_);
    return fields.get("x", made.x) && fields.get("y", made.y) && fields.get("z", made.z) && fields.done();
}

bool op_reader::read_launch(record_fields& from, listed_op& made)
{
    std::uint32_t kernel = 0;
    jit::launch_head head;
    if (!from.get("kernel", kernel) || !read_extent(from, "grid", head.shape.grid) ||
        !read_extent(from, "block", head.shape.block) || !from.get("shared_bytes", head.shape.shared_bytes))
        return false;
    if (kernel >= kernels_.size())
        return problem_.invalid({"its kernel is number ", kernel, ", there are ", kernels_.size()});
    head.kernel = kernels_[kernel]->id;
    const node* const arguments = from.get("arguments", node_kind::list);
    packed_read packed;
    if (!arguments || !read_arguments(*arguments, head, values_, problem_, packed))
        return false;
    packed.own->kernel = kernels_[kernel];
    made.info = &packed.own->info;
    made.record.op = std::move(packed.op);
    // The address is that of the kernel, as in every launch; what is kept is the description with it.
    made.record.kept = {packed.own, packed.own->kernel.get()};
    return true;
}

bool op_reader::read_call(record_fields& from, listed_op& made)
{
    std::string function;
    plugin::version wanted;
    if (!from.get("function", function) || (from.has("version") && !from.get("version", wanted.number)))
        return false;
    if (function.find('\0') != function.npos || function.size() >= plugin::call_head::room)
        return problem_.invalid(
            {"the name of its function has a zero in it or more than ", plugin::call_head::room - 1, " characters"});
    const node* const arguments = from.get("arguments", node_kind::list);
    packed_read packed;
    if (!arguments || !read_arguments(*arguments, plugin::make_head(function, wanted, 0), values_, problem_, packed))
        return false;
    made.info = &packed.own->info;
    made.record.op = std::move(packed.op);
    made.record.kept = std::move(packed.own);
    return true;
}

} // namespace coaccel::detail
