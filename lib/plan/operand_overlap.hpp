#ifndef COACCEL_PLAN_OPERAND_OVERLAP_HPP
#define COACCEL_PLAN_OPERAND_OVERLAP_HPP

#include "plan/plan_parts.hpp"

#include <iterator>
#include <optional>
#include <utility>

namespace coaccel::detail {

/// Two operands of an op that have elements in common, of which the op writes at least one; none if it permits that.
/// `same`: whether two refs name the same memory.
template <class Same>
std::optional<std::pair<const op_field*, const op_field*>> find_overlap(const listed_op& o, Same same)
{
    const auto& operands = o.info->operands;
    if (o.info->may_overlap)
        return std::nullopt;
    for (auto a = operands.begin(); a != operands.end(); ++a) {
        const any_ref x = ref_of(o, *a);
        if (has_none(*a, x))
            continue;
        for (auto b = std::next(a); b != operands.end(); ++b) {
            const any_ref y = ref_of(o, *b);
            if (!has_none(*b, y) && (writes(a->mode) || writes(b->mode)) && same(x, y) &&
                x.offset < y.offset + y.size && y.offset < x.offset + x.size)
                return std::pair(&*a, &*b);
        }
    }
    return std::nullopt;
}

} // namespace coaccel::detail

#endif
