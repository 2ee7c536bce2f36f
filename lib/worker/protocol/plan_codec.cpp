#include "worker/protocol/plan_codec.hpp"

#include "core/escape_text.hpp"
#include "worker/protocol/plan_bindings.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace coaccel::worker {

using detail::byte_range;
using detail::listed_op;
using detail::plan_content;
using detail::plan_data;
using detail::plan_slot;

namespace {

constexpr std::uint16_t format_version = 2;
/// Half the address space is the limit of every buffer, so that the sum of two sizes does not overflow.
constexpr std::uint64_t most_bytes = std::uint64_t(1) << 63;

// --- encoding -----------------------------------------------------------------------------------------------------

void put_id(encoder& out, const content_id& id)
{
    out.put(id.high);
    out.put(id.low);
}

void put_range(encoder& out, const byte_range& r)
{
    out.put(r.offset);
    out.put(r.bytes);
}

void put_contents(encoder& out, const std::vector<plan_content>& contents, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        const plan_content c = i < contents.size() ? contents[i] : plan_content{};
        out.put(c.bytes);
        put_id(out, c.id);
    }
}

void put_plan_op(encoder& out, const listed_op& o)
{
    const op_info& info = *o.info;
    out.put(info.id);
    out.put_text(info.name);
    out.put(static_cast<std::uint16_t>(info.size));
    if (is_packed_id(info.id))
        put_operands(out, info.operands);
    out.put_bytes({reinterpret_cast<const std::byte*>(o.record.op.data()), info.size});
}

// --- decoding -----------------------------------------------------------------------------------------------------

/// The description of an op and what it uses, as one object, because a plan keeps one object per op.
struct own_description {
    op_info info;
    std::shared_ptr<const void> kernel;
};

const any_ref& ref_at(const listed_op& o, const op_field& f) noexcept
{
    return *reinterpret_cast<const any_ref*>(reinterpret_cast<const std::byte*>(o.record.op.data()) + f.offset);
}

class plan_decoder {
public:
    plan_decoder(std::span<const std::byte> bytes, const plan_environment& here) : in_(bytes), here_(here) {}

    decoded_plan run()
    {
        if (get_head() && get_slots() && get_layout() && get_ops() && get_bindings() && !in_.at_end())
            malformed({"there are bytes after its end"});
        if (made_.status != plan_status::complete)
            made_.plan = {};
        return std::move(made_);
    }

private:
    bool fail(plan_status status, const error_code& why)
    {
        made_.status = status;
        made_.why = why;
        return false;
    }

    bool malformed(std::initializer_list<detail::message_part> parts)
    {
        return fail(plan_status::malformed, detail::op_error(errc::invalid_argument, "plan", parts));
    }

    bool malformed_op(std::uint32_t i, const op_info& info, std::initializer_list<detail::message_part> parts)
    {
        const std::string op = "plan: op " + std::to_string(i + 1) + " (" + info.name + ")";
        return fail(plan_status::malformed, detail::op_error(errc::invalid_argument, op, parts));
    }

    bool cut_off() { return malformed({"it is cut off, or a value is invalid"}); }

    bool get_range(byte_range& r) { return in_.get(r.offset) && in_.get(r.bytes); }
    bool get_id(content_id& id) { return in_.get(id.high) && in_.get(id.low); }

    bool get_head()
    {
        std::uint16_t version = 0;
        if (!in_.get(version))
            return cut_off();
        if (version != format_version)
            return malformed({"its format has the version ", version, ", known is ", format_version});
        return (in_.get_text(plan_.name) && get_id(plan_.id)) || cut_off();
    }

    bool get_slots()
    {
        std::uint32_t count = 0;
        if (!in_.get(count))
            return cut_off();
        if (count > most_plan_slots)
            return malformed({"it has ", count, " slots, the limit is ", most_plan_slots});
        for (std::uint32_t i = 0; i < count; ++i) {
            plan_slot s;
            if (!in_.get_text(s.name) || !in_.get(s.kind, slot_kind::input, slot_kind::parameter) ||
                !in_.get(s.type, dtype::f16, dtype::c128) || !in_.get(s.count) || !in_.get(s.offset))
                return cut_off();
            if (s.count == 0 || s.count > most_bytes / size_of(s.type))
                return malformed({"slot ", i, " has ", s.count, " elements"});
            s.index = kinds_[static_cast<std::size_t>(s.kind)]++;
            if (auto* const list = list_of(s.kind))
                list->push_back(i);
            plan_.slots.push_back(std::move(s));
        }
        return get_contents(plan_.constant_contents, plan_.constants) &&
               get_contents(plan_.state_contents, plan_.states);
    }

    std::vector<std::uint32_t>* list_of(slot_kind k) noexcept
    {
        switch (k) {
        case slot_kind::input: return &plan_.inputs;
        case slot_kind::output: return &plan_.outputs;
        case slot_kind::constant: return &plan_.constants;
        case slot_kind::state: return &plan_.states;
        case slot_kind::parameter: return &plan_.parameters;
        case slot_kind::scratch: break;
        }
        return nullptr;
    }

    bool get_contents(std::vector<plan_content>& contents, const std::vector<std::uint32_t>& slots)
    {
        for (const std::uint32_t slot : slots) {
            plan_content c;
            if (!in_.get(c.bytes) || !get_id(c.id))
                return cut_off();
            // A state without content begins with zeros.
            if (c.bytes != 0 && c.bytes != plan_.slots[slot].bytes())
                return malformed(
                    {"the content of slot ", slot, " has ", c.bytes, " bytes, the slot ", plan_.slots[slot].bytes()});
            contents.push_back(std::move(c));
        }
        return true;
    }

    bool get_layout()
    {
        if (!in_.get(plan_.instance_bytes) || !get_range(plan_.staged_inputs) || !get_range(plan_.staged_outputs) ||
            !in_.get(plan_.unshared_scratch_bytes) || !get_kind())
            return cut_off();
        if (plan_.instance_bytes > most_bytes)
            return malformed({"an instance has ", plan_.instance_bytes, " bytes"});
        for (const byte_range& r : {plan_.staged_inputs, plan_.staged_outputs})
            if (!is_inside(r))
                return malformed({"the staged range at ", r.offset, " of ", r.bytes, " bytes is outside the instance"});
        for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
            const plan_slot& s = plan_.slots[i];
            if (s.in_instance() && (s.offset % detail::slot_alignment != 0 || !is_inside({s.offset, s.bytes()})))
                return malformed(
                    {"slot ", i, " at ", s.offset, " of ", s.bytes(), " bytes is unaligned or outside the instance"});
            if (plan_.over_buffers && (s.in_instance() || s.offset >= s.bytes() || s.offset % size_of(s.type) != 0))
                return malformed(
                    {"slot ", i, " of a graph is no buffer, or its use begins at byte ", s.offset, " of ", s.bytes()});
            if (s.kind == slot_kind::parameter && (s.count != 1 || !is_staged(s)))
                return malformed({"slot ", i, " is a parameter that is not one staged element"});
        }
        return true;
    }

    bool get_kind()
    {
        std::uint8_t over_buffers = 0;
        if (!in_.get(over_buffers) || over_buffers > 1)
            return false;
        plan_.over_buffers = over_buffers == 1;
        return true;
    }

    bool is_inside(const byte_range& r) const noexcept
    {
        return r.offset <= plan_.instance_bytes && r.bytes <= plan_.instance_bytes - r.offset;
    }

    bool is_staged(const plan_slot& s) const noexcept
    {
        const byte_range& r = plan_.staged_inputs;
        return s.offset >= r.offset && s.offset - r.offset <= r.bytes && s.bytes() <= r.bytes - (s.offset - r.offset);
    }

    bool get_ops()
    {
        std::uint32_t count = 0;
        if (!in_.get(count))
            return cut_off();
        if (count > most_plan_ops)
            return malformed({"it has ", count, " ops, the limit is ", most_plan_ops});
        for (std::uint32_t i = 0; i < count; ++i)
            if (!get_op(i))
                return false;
        return true;
    }

    bool get_op(std::uint32_t i)
    {
        std::uint64_t id = 0;
        std::uint16_t size = 0;
        std::string name;
        if (!in_.get(id) || !in_.get_text(name) || !in_.get(size) || size == 0 || size > largest_op)
            return cut_off();
        listed_op o{nullptr, {}};
        const bool described = is_packed_id(id) ? get_packed(i, id, size, o) : get_plain(i, id, size, name, o);
        if (!described)
            return false;
        if (o.info->name != name)
            return malformed_op(i, *o.info, {"it has another name"});
        if (check_plan_op(*o.info) || has_stored_form(*o.info))
            return malformed_op(i, *o.info, {"it cannot be in a plan"});
        if (!check_refs(i, o) || !check_overlap(i, o))
            return false;
        if (auto ec = o.info->check(o.record.op.data()))
            return refused(ec);
        plan_.ops.push_back(std::move(o));
        return true;
    }

    /// The reply of such an op is its result, which a plan must store.
    bool has_stored_form(const op_info& info) const
    {
        return info.reply_size != 0 && here_.describe(detail::hash("stored reply", info.id));
    }

    bool get_data(std::uint16_t size, listed_op& o)
    {
        std::span<const std::byte> data;
        if (!in_.get_bytes(size, data))
            return cut_off();
        o.record.op.resize(detail::op_units(size));
        std::memcpy(o.record.op.data(), data.data(), size);
        return true;
    }

    bool get_plain(std::uint32_t i, std::uint64_t id, std::uint16_t size, std::string_view name, listed_op& o)
    {
        if (!get_data(size, o))
            return false;
        o.info = here_.describe(id);
        if (!o.info)
            return refused(detail::op_error(errc::unsupported_op, detail::escape_text(name.substr(0, 100)),
                                            {"the ", here_.backend, " backend does not implement it"}));
        return size == o.info->size || malformed_op(i, *o.info, {"it has ", size, " bytes"});
    }

    bool get_packed(std::uint32_t i, std::uint64_t id, std::uint16_t size, listed_op& o)
    {
        std::vector<op_field> operands;
        if (!get_operands(in_, operands, size))
            return cut_off();
        if (!get_data(size, o))
            return false;
        auto own = std::make_shared<own_description>();
        const packed_op_frame frame{id, std::as_writable_bytes(std::span(o.record.op)).first(size), operands};
        if (const auto ec = describe_packed(frame, here_.kernels, own->info, own->kernel)) {
            if (ec == errc::worker_corrupted)
                return malformed({"the arguments of op ", i + 1, " are invalid"});
            return refused(ec);
        }
        describe_arguments(own->info, o);
        o.info = &own->info;
        o.record.kept = std::move(own);
        return true;
    }

    bool refused(const error_code& ec) { return fail(plan_status::refused, ec); }

    bool check_refs(std::uint32_t i, const listed_op& o)
    {
        for (const op_field& f : o.info->operands) {
            const any_ref& r = ref_at(o, f);
            if (detail::has_none(f, r)) {
                if (r.type != f.type)
                    return malformed_op(i, *o.info, {f.name, " has another element type"});
                continue;
            }
            if (!detail::names_slot(r) || r.generation != 0 || r.slot >= plan_.slots.size())
                return malformed_op(i, *o.info, {f.name, " names no slot of the plan"});
            const plan_slot& s = plan_.slots[r.slot];
            if (r.type != f.type || s.type != f.type)
                return malformed_op(i, *o.info, {f.name, " has another element type"});
            if (r.offset > s.count || r.size > s.count - r.offset)
                return malformed_op(i, *o.info, {f.name, " reaches beyond its slot"});
            if (writes(f.mode) && s.kind == slot_kind::constant)
                return malformed_op(i, *o.info, {f.name, " is a constant"});
        }
        return true;
    }

    /// Slots may share memory, so the op's own check does not see every overlap.
    bool check_overlap(std::uint32_t i, const listed_op& o)
    {
        const auto& fields = o.info->operands;
        for (std::size_t a = 0; a < fields.size(); ++a) {
            const any_ref& x = ref_at(o, fields[a]);
            if (detail::has_none(fields[a], x))
                continue;
            for (std::size_t b = a + 1; b < fields.size(); ++b) {
                const any_ref& y = ref_at(o, fields[b]);
                if (detail::has_none(fields[b], y) || (!writes(fields[a].mode) && !writes(fields[b].mode)))
                    continue;
                if ((x.slot != y.slot || !o.info->may_overlap) && share_memory(x, y))
                    return malformed_op(i, *o.info, {fields[a].name, " and ", fields[b].name, " overlap"});
            }
        }
        return true;
    }

    bool share_memory(const any_ref& a, const any_ref& b) const noexcept
    {
        const plan_slot &s = plan_.slots[a.slot], &t = plan_.slots[b.slot];
        if (a.slot != b.slot && !(s.in_instance() && t.in_instance()))
            return false;
        const auto begin = [](const plan_slot& of, const any_ref& r) {
            return (of.in_instance() ? of.offset : 0) + r.offset * size_of(r.type);
        };
        const std::uint64_t x = begin(s, a), y = begin(t, b);
        return x < y + b.size * size_of(b.type) && y < x + a.size * size_of(a.type);
    }

    bool get_bindings()
    {
        const auto ec = worker::get_bindings(in_, plan_);
        return !ec || fail(plan_status::malformed, ec);
    }

    decoder in_;
    const plan_environment& here_;
    decoded_plan made_;
    plan_data& plan_ = made_.plan;
    std::uint32_t kinds_[slot_kind_count]{};
};

} // namespace

void encode_plan(encoder& out, const plan_data& p)
{
    out.put(format_version);
    out.put_text(p.name);
    put_id(out, p.id);
    out.put(static_cast<std::uint32_t>(p.slots.size()));
    for (const plan_slot& s : p.slots) {
        out.put_text(s.name);
        out.put(s.kind);
        out.put(s.type);
        out.put(s.count);
        out.put(s.offset);
    }
    put_contents(out, p.constant_contents, p.constants.size());
    put_contents(out, p.state_contents, p.states.size());
    out.put(p.instance_bytes);
    put_range(out, p.staged_inputs);
    put_range(out, p.staged_outputs);
    out.put(p.unshared_scratch_bytes);
    out.put(static_cast<std::uint8_t>(p.over_buffers));
    out.put(static_cast<std::uint32_t>(p.ops.size()));
    for (const listed_op& o : p.ops)
        put_plan_op(out, o);
    put_bindings(out, p);
}

error_code check_plan_op(const op_info& info) noexcept
{
    if (info.id == detail::user_op_id)
        return detail::op_error(errc::not_isolatable, info.name,
                                {"the function is code of this process, and the device is in a worker process; put it "
                                 "into a plug-in and use plugin::call, or use isolation::in_process"});
    if (info.role != op_role::compute || info.lib == library::plan)
        return detail::op_error(errc::not_isolatable, info.name,
                                {"it uses memory of the caller, which a plan in a worker process does not have"});
    if (info.reply_size != 0 && std::ranges::none_of(info.operands, [](const op_field& f) { return writes(f.mode); }))
        return detail::op_error(errc::not_isolatable, info.name, {"nothing receives its reply in a plan"});
    return {};
}

decoded_plan decode_plan(std::span<const std::byte> bytes, const plan_environment& here)
{
    return plan_decoder(bytes, here).run();
}

} // namespace coaccel::worker
