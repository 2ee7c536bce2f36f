#include "plan/content_hash.hpp"
#include "plan/file/kernel_records.hpp"
#include "plan/file/known_ops.hpp"
#include "plan/file/packed_arguments.hpp"
#include "plan/file/plan_file.hpp"

#include <algorithm>
#include <map>

namespace coaccel::detail {
namespace {

class plan_writer {
public:
    explicit plan_writer(const plan_data& plan) : plan_(plan), values_(out_) {}

    result<plan_file_parts> run()
    {
        out_["plan"].begin_record();
        out_["name"].text(plan_.name);
        out_["library"].text("coaccel " COACCEL_VERSION_STRING);
        out_.end();
        if (auto ec = write_kernels())
            return ec;
        write_slots();
        out_["ops"].begin_list();
        for (at_ = 0; at_ < plan_.ops.size(); ++at_)
            if (auto ec = write_op(plan_.ops[at_]))
                return ec;
        out_.end();
        return finish();
    }

private:
    error_code refuse(const op_info& info, std::initializer_list<message_part> parts) const
    {
        return op_error(errc::not_savable,
                        plan_label(plan_.name) + ": op " + std::to_string(at_ + 1) + " (" + info.name + ")", parts);
    }

    error_code write_kernels()
    {
        out_["kernels"].begin_list();
        for (at_ = 0; at_ < plan_.ops.size(); ++at_) {
            const listed_op& o = plan_.ops[at_];
            const auto* const launch = as_launch(o);
            if (!launch || !kernels_.emplace(launch->kernel, static_cast<std::uint32_t>(kernels_.size())).second)
                continue;
            const jit::image& i = image_of(o);
            if (i.host != 0)
                return refuse(*o.info,
                              {"the kernel ", i.name, " has a host function, which exists only in this program"});
            if (i.source.empty())
                return refuse(*o.info, {"the source of the kernel ", i.name, " is not known"});
            write_kernel(out_, i);
        }
        out_.end();
        return {};
    }

    void write_slots()
    {
        out_["slots"].begin_list();
        for (std::uint32_t i = 0; i < plan_.slots.size(); ++i) {
            if (is_fixed_scalar(i))
                continue;
            const plan_slot& s = plan_.slots[i];
            out_.begin_record();
            out_["name"].text(s.name);
            out_["kind"].text(to_string(s.kind));
            out_["type"].text(to_string(s.type));
            out_["count"].number(s.count);
            if (s.durable)
                out_["durable"].text(to_string(*s.durable));
            if (s.kind == slot_kind::constant)
                write_content(plan_.constant_contents[s.index]);
            else if (s.kind == slot_kind::state && plan_.state_contents[s.index].data)
                write_content(plan_.state_contents[s.index]);
            out_.end();
        }
        out_.end();
    }

    /// Whether add_fixed_scalars has made the slot, and will do so again. Such slots are the last ones.
    bool is_fixed_scalar(std::uint32_t slot) const noexcept
    {
        return plan_.slots[slot].kind == slot_kind::constant &&
               std::ranges::find(plan_.bindings, slot, &plan_binding::slot) != plan_.bindings.end();
    }

    void write_content(const plan_content& c)
    {
        out_["content"].begin_record();
        out_["offset"].number(contents_end_);
        out_["bytes"].number(c.bytes);
        out_["hash_high"].number(c.id.high);
        out_["hash_low"].number(c.id.low);
        out_.end();
        made_.contents.push_back({c.data.get(), static_cast<std::size_t>(c.bytes)});
        last_bytes_ = c.bytes;
        contents_end_ += aligned_content(c.bytes);
    }

    error_code write_op(const listed_op& o)
    {
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
            unwritten = write_arguments(out_, values_, o, {call->arguments(), call->count});
        } else if (auto ec = write_fields(o))
            return ec;
        if (unwritten)
            return refuse(*o.info, {unwritten->name, " has a type that a file cannot describe"});
        write_parameters(*o.info);
        if (std::ranges::binary_search(plan_.marked_pure, static_cast<std::uint32_t>(at_)))
            out_["pure"].boolean(true);
        out_.end();
        return {};
    }

    /// The fields of this op whose values are parameters.
    void write_parameters(const op_info& info)
    {
        const auto bound = bindings_of(plan_, at_);
        const auto is_parameter = [this](const plan_binding& b) { return !is_fixed_scalar(b.slot); };
        if (std::ranges::none_of(bound, is_parameter))
            return;
        out_["parameters"].begin_record();
        for (const plan_binding& b : bound)
            if (is_parameter(b))
                out_[info.fields[b.field].name].number(b.slot);
        out_.end();
    }

    void write_extent(std::string_view name, const jit::dim3& d)
    {
        out_[name].begin_record();
        out_["x"].number(d.x);
        out_["y"].number(d.y);
        out_["z"].number(d.z);
        out_.end();
    }

    error_code write_fields(const listed_op& o)
    {
        const known_op* const known = find_known_op(o.info->name);
        if (!known || known->info->id != o.info->id)
            return refuse(*o.info, {"it is not an operation of the library"});
        out_["fields"].begin_record();
        for (const op_field& f : o.info->fields) {
            out_[f.name];
            if (f.what == op_field::kind::operand)
                values_.operand(f, ref_of(o, f));
            else
                values_.value(f, field_data(o, f));
        }
        out_.end();
        return {};
    }

    plan_file_parts finish()
    {
        const auto description = out_.written();
        plan_file_header h{};
        std::memcpy(h.magic, plan_file_magic, sizeof(h.magic));
        h.version = plan_file_version;
        h.description_bytes = description.size();
        h.description = hash_content(description.data(), description.size());
        h.file_bytes = sizeof(h) + description.size();
        if (!made_.contents.empty())
            h.file_bytes = aligned_content(h.file_bytes) + contents_end_ - aligned_content(last_bytes_) + last_bytes_;
        const auto* const head = reinterpret_cast<const std::byte*>(&h);
        made_.head.reserve(sizeof(h) + description.size());
        made_.head.assign(head, head + sizeof(h));
        made_.head.insert(made_.head.end(), description.begin(), description.end());
        return std::move(made_);
    }

    const plan_data& plan_;
    tree_writer out_;
    op_value_writer values_;
    plan_file_parts made_;
    std::map<std::uint64_t, std::uint32_t> kernels_;
    std::uint64_t contents_end_ = 0;
    std::uint64_t last_bytes_ = 0;
    std::size_t at_ = 0;
};

} // namespace

result<plan_file_parts> write_plan(const plan_data& plan)
{
    return plan_writer(plan).run();
}

} // namespace coaccel::detail
