#include "plan/graph.hpp"

#include "plan/operand_overlap.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>

namespace coaccel::detail {
namespace {

/// As for plans; workers have the same limits.
constexpr std::size_t most_ops = 0xffff;
constexpr std::size_t most_buffers = 0xffff;

/// One buffer and how the ops use it.
struct used_buffer {
    any_ref ref;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool written = false;
    /// Its first use, such as "x of op 2 (blas.gemv<f32>)".
    std::string first_use;
    /// Its slot in the plan.
    std::uint32_t slot = 0;

    /// The first element of its slot. Libraries choose kernels by the alignment of their operands, so the memory on
    /// which the ops run for the first time must be aligned as the buffer is.
    std::uint64_t slot_begin() const noexcept
    {
        const std::uint64_t unit = slot_alignment / size_of(ref.type);
        return begin / unit * unit;
    }
};

class recorder {
public:
    recorder(std::vector<listed_op> ops, std::string name) : plan_(std::make_shared<plan_data>())
    {
        plan_->name = std::move(name);
        plan_->over_buffers = true;
        plan_->ops = std::move(ops);
    }

    result<recorded_graph> run()
    {
        if (plan_->ops.empty())
            return refuse(errc::invalid_argument, {"it has no ops"});
        if (plan_->ops.size() > most_ops)
            return refuse(errc::invalid_argument, {"it has ", plan_->ops.size(), " ops, the limit is ", most_ops});
        for (at_ = 0; at_ < plan_->ops.size(); ++at_)
            if (auto ec = note_op())
                return ec;
        if (used_.size() > most_buffers)
            return refuse(errc::invalid_argument,
                          {"its ops use ", used_.size(), " buffers, the limit is ", most_buffers});
        std::vector<any_ref> buffers;
        buffers.reserve(used_.size());
        add_slots(slot_kind::constant, buffers);
        add_slots(slot_kind::state, buffers);
        for (listed_op& o : plan_->ops)
            name_slots(o);
        make_own_generators(plan_->ops);
        return recorded_graph{std::move(plan_), std::move(buffers)};
    }

private:
    using key = std::pair<std::uint32_t, std::uint32_t>;

    static key key_of(const any_ref& r) noexcept { return {r.slot, r.version}; }

    const listed_op& op() const noexcept { return plan_->ops[at_]; }

    std::string op_label() const { return "op " + std::to_string(at_ + 1) + " (" + op().info->name + ")"; }

    error_code refuse(errc what, std::initializer_list<message_part> parts) const
    {
        return op_error(what, plan_->name, parts);
    }

    error_code refuse_op(errc what, std::initializer_list<message_part> parts) const
    {
        return op_error(what, plan_->name + ": " + op_label(), parts);
    }

    error_code note_op()
    {
        const op_info& info = *op().info;
        if (info.role != op_role::compute || info.lib == library::plan || info.id == user_op_id)
            return refuse_op(errc::invalid_argument, {"it cannot be recorded"});
        if (info.reply_size != 0 && std::ranges::none_of(info.operands, [](const auto& f) { return writes(f.mode); }))
            return refuse_op(errc::invalid_argument,
                             {"its reply is its only effect, but a graph returns no replies; use store_reply"});
        for (const op_field& f : info.operands)
            if (const any_ref r = ref_of(op(), f); !has_none(f, r))
                if (auto ec = note_use(f, r))
                    return ec;
        if (auto ec = check_overlap())
            return ec;
        const error_code own = info.check(op().record.op.data());
        if (!own || depends_on_plugin(op(), errc_of(own)))
            return {};
        return errc_of(own) == errc{} ? own : refuse_op(errc_of(own), {own.message()});
    }

    error_code note_use(const op_field& f, const any_ref& r)
    {
        if (r.device == 0 || names_slot(r))
            return refuse_op(errc::invalid_argument, {f.name, " names no buffer"});
        if (r.type != f.type)
            return refuse_op(errc::wrong_dtype,
                             {f.name, " takes ", to_string(f.type), ", given a ref of ", to_string(r.type)});
        if (r.offset == any_ref::invalid_offset)
            return refuse_op(errc::out_of_bounds, {f.name, " is a subspan of ", r.size, " elements outside its ref"});
        if (r.size > any_ref::invalid_offset - r.offset)
            return refuse_op(errc::out_of_bounds, {f.name, " names ", r.size, " elements from ", r.offset, " on"});
        if (r.size == 0)
            return refuse_op(errc::invalid_argument, {f.name, " has 0 elements"});
        if (used_.empty())
            origin_ = r;
        if (r.device != origin_.device)
            return refuse_op(errc::wrong_device, {f.name, " belongs to another device than the operands before it"});
        if (r.generation != origin_.generation)
            return refuse_op(errc::stale_ref, {f.name, " is of generation ", r.generation,
                                               ", the operands before it of generation ", origin_.generation});
        const auto [found, is_first] = used_.try_emplace(key_of(r));
        used_buffer& u = found->second;
        if (is_first)
            u = {.ref = r, .begin = r.offset, .end = r.offset, .first_use = std::string(f.name) + " of " + op_label()};
        if (u.ref.type != r.type)
            return refuse_op(errc::wrong_dtype, {f.name, " takes ", to_string(r.type), ", but ", u.first_use,
                                                 " uses its buffer as ", to_string(u.ref.type)});
        u.begin = std::min(u.begin, r.offset);
        u.end = std::max(u.end, r.offset + r.size);
        u.written = u.written || writes(f.mode);
        return {};
    }

    error_code check_overlap() const
    {
        const auto two = find_overlap(op(), [](const any_ref& x, const any_ref& y) { return key_of(x) == key_of(y); });
        return two ? refuse_op(errc::overlap, {two->first->name, " and ", two->second->name, " overlap"})
                   : error_code();
    }

    void add_slots(slot_kind kind, std::vector<any_ref>& buffers)
    {
        auto& list = kind == slot_kind::state ? plan_->states : plan_->constants;
        auto& contents = kind == slot_kind::state ? plan_->state_contents : plan_->constant_contents;
        for (auto& [k, u] : used_) {
            if (u.written != (kind == slot_kind::state))
                continue;
            const std::uint64_t first = u.slot_begin();
            u.slot = static_cast<std::uint32_t>(plan_->slots.size());
            plan_->slots.push_back({.name = u.first_use,
                                    .kind = kind,
                                    .type = u.ref.type,
                                    .count = u.end - first,
                                    .offset = (u.begin - first) * size_of(u.ref.type),
                                    .index = static_cast<std::uint32_t>(list.size())});
            list.push_back(u.slot);
            contents.emplace_back();
            any_ref part = u.ref;
            part.offset = first;
            part.size = u.end - first;
            buffers.push_back(part);
        }
    }

    /// Replaces the refs to buffers by refs to slots.
    void name_slots(listed_op& o) const
    {
        for (const op_field& f : o.info->operands) {
            const any_ref r = ref_of(o, f);
            if (has_none(f, r))
                continue;
            const used_buffer& u = used_.find(key_of(r))->second;
            const any_ref named{.device = plan_device,
                                .slot = u.slot,
                                .offset = r.offset - u.slot_begin(),
                                .size = r.size,
                                .type = r.type};
            std::memcpy(reinterpret_cast<std::byte*>(o.record.op.data()) + f.offset, &named, sizeof(named));
        }
    }

    std::shared_ptr<plan_data> plan_;
    /// The first operand, which names the device and the context.
    any_ref origin_;
    std::map<key, used_buffer> used_;
    std::size_t at_ = 0;
};

} // namespace

result<recorded_graph> record_graph(std::vector<listed_op> ops, std::string name)
{
    return recorder(std::move(ops), std::move(name)).run();
}

graph_run::graph_run(const plan_data& p, const plan_run_op& head, std::span<const any_ref> buffers)
    : info_(info_of<plan_run_op>())
{
    std::vector<any_ref> refs;
    const auto add = [&](const std::vector<std::uint32_t>& slots, access mode) {
        for (const std::uint32_t i : slots) {
            const plan_slot& s = p.slots[i];
            // Without what precedes the first element that an op uses.
            any_ref r = buffers[refs.size()];
            const std::uint64_t skipped = s.offset / size_of(s.type);
            r.offset += skipped;
            r.size = s.count - skipped;
            const auto at = static_cast<std::uint32_t>(sizeof(plan_run_op) + refs.size() * sizeof(any_ref));
            info_.operands.push_back({s.name, at, sizeof(any_ref), op_field::kind::operand, mode, s.type});
            refs.push_back(r);
        }
    };
    add(p.constants, access::read);
    add(p.states, access::read_write);
    info_.name = p.name;
    info_.size = static_cast<std::uint32_t>(sizeof(plan_run_op) + refs.size() * sizeof(any_ref));
    op_.resize(op_units(info_.size));
    std::memcpy(op_.data(), &head, sizeof(head));
    std::memcpy(reinterpret_cast<std::byte*>(op_.data()) + sizeof(head), refs.data(), refs.size() * sizeof(any_ref));
    addresses_.resize(info_.operands.size());
}

} // namespace coaccel::detail
