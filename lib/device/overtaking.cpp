#include "device/overtaking.hpp"

#include "context/buffers/operands.hpp"

#include <algorithm>

namespace coaccel::detail {
namespace {

bool conflict(const bound_op& a, const bound_op& b) noexcept
{
    const auto& first = a.info->operands;
    const auto& second = b.info->operands;
    for (std::size_t i = 0; i < first.size(); ++i) {
        const any_ref& ref = operand_of(a, i);
        // Most operands of a list may have no buffer.
        if (ref.size == 0)
            continue;
        for (std::size_t j = 0; j < second.size(); ++j)
            if (overlap(ref, operand_of(b, j)) && (writes(first[i].mode) || writes(second[j].mode)))
                return true;
    }
    return false;
}

} // namespace

bool may_overtake(const request& r) noexcept
{
    if (r.bytes != 0)
        return false;
    return std::ranges::all_of(r.ops, [](const bound_op& o) { return o.info->pure; });
}

bool conflict(const request& a, const request& b) noexcept
{
    return std::ranges::any_of(a.ops, [&](const bound_op& x) {
        return std::ranges::any_of(b.ops, [&](const bound_op& y) { return conflict(x, y); });
    });
}

} // namespace coaccel::detail
