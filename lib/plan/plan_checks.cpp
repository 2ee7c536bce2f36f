#include "plan/operand_overlap.hpp"
#include "plan/plan_parts.hpp"
#include "plan/range_set.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace coaccel::detail {
namespace {

/// A range of elements in a message, such as "scratch1 [512, 1024)".
std::string part_of(const plan_slot& s, std::uint64_t begin, std::uint64_t end)
{
    return s.name + " [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

/// Goes through the ops of a draft and follows what they write.
class checker {
public:
    explicit checker(const plan_draft& draft) : draft_(draft), written_(draft.slots.size()) {}

    error_code run()
    {
        if (draft_.ops.empty())
            return refuse(errc::invalid_argument, {"it has no ops"});
        if (count(slot_kind::output) == 0 && count(slot_kind::state) == 0)
            return refuse(errc::invalid_argument, {"it has no outputs and no states, so it has no effect"});
        for (at_ = 0; at_ < draft_.ops.size(); ++at_)
            if (auto ec = check_op())
                return ec;
        if (auto ec = check_parameters())
            return ec;
        return check_outputs();
    }

private:
    std::uint32_t count(slot_kind k) const noexcept { return draft_.counts[std::size_t(k)]; }
    const listed_op& op() const noexcept { return draft_.ops[at_]; }
    const plan_slot& slot_of(const any_ref& r) const noexcept { return draft_.slots[r.slot]; }

    error_code refuse(errc what, std::initializer_list<message_part> parts) const
    {
        return op_error(what, plan_label(draft_.name), parts);
    }

    std::string op_label() const
    {
        return plan_label(draft_.name) + ": op " + std::to_string(at_ + 1) + " (" + op().info->name + ")";
    }

    error_code refuse_op(errc what, std::initializer_list<message_part> parts) const
    {
        return op_error(what, op_label(), parts);
    }

    error_code check_op()
    {
        // Those that have a slot; optional operands need not.
        std::vector<const op_field*> operands;
        for (const op_field& f : op().info->operands)
            if (!has_none(f, ref_of(op(), f)))
                operands.push_back(&f);
        for (const op_field* f : operands)
            if (auto ec = check_ref(*f, ref_of(op(), *f)))
                return ec;
        if (auto ec = check_own())
            return ec;
        if (auto ec = check_overlap())
            return ec;
        for (const op_field* f : operands)
            if (auto ec = check_use(*f, ref_of(op(), *f)))
                return ec;
        for (const op_field* f : operands)
            if (const any_ref r = ref_of(op(), *f); writes(f->mode))
                written_[r.slot].add(r.offset, r.offset + r.size);
        return {};
    }

    error_code check_ref(const op_field& f, const any_ref& r) const
    {
        if (r.device == 0)
            return refuse_op(errc::invalid_argument, {f.name, " names no slot"});
        if (!names_slot(r))
            return refuse_op(errc::invalid_argument,
                             {f.name, " names a buffer of a device, but a plan has only slots"});
        if (r.generation != draft_.builder || r.slot >= draft_.slots.size())
            return refuse_op(errc::invalid_argument, {f.name, " names a slot of another builder"});
        const plan_slot& s = slot_of(r);
        if (s.kind == slot_kind::parameter)
            return refuse_op(errc::invalid_argument, {f.name, " names ", s.name, ", which is a parameter"});
        if (s.type != f.type)
            return refuse_op(errc::wrong_dtype,
                             {f.name, " takes ", to_string(f.type), ", ", s.name, " holds ", to_string(s.type)});
        if (r.type != f.type)
            return refuse_op(errc::wrong_dtype, {f.name, " takes ", to_string(f.type), ", given a ref of ",
                                                 to_string(r.type), " to ", s.name});
        if (r.offset == any_ref::invalid_offset)
            return refuse_op(errc::out_of_bounds,
                             {f.name, " is a subspan of ", r.size, " elements outside its ref to ", s.name});
        if (r.offset > s.count || r.size > s.count - r.offset)
            return refuse_op(errc::out_of_bounds, {f.name, " names ", r.size, " elements from ", r.offset, " on, ",
                                                   s.name, " has ", s.count});
        return {};
    }

    /// The op as a GPU runs it: one that reads a factor from device memory reads all of them, and knows no value.
    op_record with_unknown_factors() const
    {
        const op_info& info = *op().info;
        op_record copy;
        copy.assign(info, op().record.op.data());
        const auto by_address = [](const op_field& f) { return f.variable == op_field::parameter::by_address; };
        const auto is_bound = [&](const plan_binding& b) { return b.op == at_ && by_address(info.fields[b.field]); };
        if (std::ranges::any_of(draft_.bindings, is_bound))
            for (const op_field& f : info.fields)
                if (by_address(f))
                    store_neutral_value(f, reinterpret_cast<std::byte*>(copy.op.data()) + f.offset);
        return copy;
    }

    /// Calls the check of the op itself.
    error_code check_own() const
    {
        const op_info& info = *op().info;
        const error_code ec = info.check(with_unknown_factors().op.data());
        const errc what = errc_of(ec);
        if (!ec || depends_on_plugin(op(), what))
            return {};
        if (what == errc{})
            return ec;
        const std::string text = ec.message();
        std::string_view rest = text;
        const std::string_view full = info.name;
        for (const std::string_view name : {full, full.substr(0, full.find_first_of("< "))})
            if (rest.starts_with(name) && rest.substr(name.size()).starts_with(": ")) {
                rest.remove_prefix(name.size() + 2);
                break;
            }
        return refuse_op(what, {rest});
    }

    error_code check_overlap() const
    {
        const auto two = find_overlap(op(), [](const any_ref& x, const any_ref& y) { return x.slot == y.slot; });
        if (!two)
            return {};
        const any_ref x = ref_of(op(), *two->first);
        const any_ref y = ref_of(op(), *two->second);
        const auto part =
            part_of(slot_of(x), std::max(x.offset, y.offset), std::min(x.offset + x.size, y.offset + y.size));
        return refuse_op(errc::overlap, {two->first->name, " and ", two->second->name, " overlap in ", part});
    }

    error_code check_use(const op_field& f, const any_ref& r) const
    {
        const plan_slot& s = slot_of(r);
        const bool only_read = s.kind == slot_kind::input || s.kind == slot_kind::constant;
        if (writes(f.mode) && only_read)
            return refuse_op(errc::invalid_argument, {f.name, " writes ", s.name, ", which is ",
                                                      s.kind == slot_kind::input ? "an input" : "a constant"});
        if (only_read || s.kind == slot_kind::state || !reads(mode_of(op(), f)))
            return {};
        if (const auto gap = written_[r.slot].first_gap(r.offset, r.offset + r.size))
            return refuse_op(errc::invalid_argument, {f.name, use_of(f), part_of(s, gap->begin, gap->end),
                                                      ", which no earlier op has written"});
        return {};
    }

    /// What the op does with elements of an operand that it does not overwrite.
    std::string_view use_of(const op_field& f) const noexcept
    {
        // `overwrites` is also false for a result that does not reach all elements of its ref.
        const bool may_keep = f.mode == access::read_write && op().info->overwrites;
        return may_keep ? " is not completely overwritten, so it keeps or adds to " : " reads ";
    }

    error_code check_parameters() const
    {
        std::vector<bool> used(draft_.slots.size());
        for (const plan_binding& b : draft_.bindings)
            used[b.slot] = true;
        for (std::size_t i = 0; i < draft_.slots.size(); ++i)
            if (draft_.slots[i].kind == slot_kind::parameter && !used[i])
                return refuse(errc::invalid_argument, {"no op uses the parameter ", draft_.slots[i].name});
        return {};
    }

    error_code check_outputs() const
    {
        for (std::size_t i = 0; i < draft_.slots.size(); ++i) {
            const plan_slot& s = draft_.slots[i];
            if (s.kind != slot_kind::output)
                continue;
            if (const auto gap = written_[i].first_gap(0, s.count))
                return refuse(errc::invalid_argument, {"no op writes ", part_of(s, gap->begin, gap->end)});
        }
        return {};
    }

    const plan_draft& draft_;
    std::vector<range_set> written_;
    std::size_t at_ = 0;
};

} // namespace

error_code check_plan(const plan_draft& draft)
{
    return checker(draft).run();
}

std::string plan_label(const std::string& name)
{
    return name.empty() ? std::string("plan") : "plan " + name;
}

} // namespace coaccel::detail
