#include "device/overtaking.hpp"

#include "context/buffers/operands.hpp"

#include <algorithm>

namespace coaccel::detail {
namespace {

bool conflict(const bound_op& a, const bound_op& b) noexcept
{
    const auto& first = a.info->operands;
    const auto& second = b.info->operands;
    for (std::size_t i = 0; i < first.size(); ++i)
        for (std::size_t j = 0; j < second.size(); ++j)
            if ((writes(first[i].mode) || writes(second[j].mode)) && overlap(operand_of(a, i), operand_of(b, j)))
                return true;
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
