#include "plan/plan_parts.hpp"

#include <coaccel/plan/plan_builder.hpp>

#include <utility>

namespace coaccel::detail {
namespace {

/// Gives a plan the slots of its set that its ops use, in the order of their first use.
class joiner {
public:
    joiner(joined_draft& made, const plan_draft& common)
        : made_(made), common_(common), places_(common.slots.size(), none)
    {}

    void run()
    {
        for (listed_op& o : made_.draft.ops)
            for (const op_field& f : o.info->operands)
                join(o, f);
    }

private:
    static constexpr std::uint32_t none = joined_draft::own_slot;

    void join(listed_op& o, const op_field& f)
    {
        any_ref r = ref_of(o, f);
        if (!names_slot(r) || r.generation != common_.builder || r.slot >= common_.slots.size())
            return;
        std::uint32_t& place = places_[r.slot];
        if (place == none && !add(r.slot))
            return;
        r.slot = place;
        r.generation = made_.draft.builder;
        std::memcpy(reinterpret_cast<std::byte*>(o.record.op.data()) + f.offset, &r, sizeof(r));
    }

    bool add(std::uint32_t which)
    {
        plan_draft& draft = made_.draft;
        plan_slot s = common_.slots[which];
        if (draft.slots.size() == plan_builder::max_slots) {
            if (draft.problem == errc{}) {
                draft.problem = errc::invalid_argument;
                draft.message = plan_label(draft.name) + ": " + s.name + ": a plan has at most " +
                                std::to_string(plan_builder::max_slots) + " slots";
            }
            return false;
        }
        places_[which] = static_cast<std::uint32_t>(draft.slots.size());
        s.index = draft.counts[std::size_t(s.kind)]++;
        draft.slots.push_back(std::move(s));
        draft.contents.push_back(common_.contents[which]);
        made_.from.push_back(which);
        return true;
    }

    joined_draft& made_;
    const plan_draft& common_;
    /// For each slot of the set: its index in the plan.
    std::vector<std::uint32_t> places_;
};

} // namespace

joined_draft join_common_slots(const plan_draft& draft)
{
    joined_draft made{.draft = draft, .from = std::vector(draft.slots.size(), joined_draft::own_slot)};
    made.draft.common.reset();
    if (draft.common)
        joiner(made, *draft.common).run();
    return made;
}

} // namespace coaccel::detail
