#ifndef COACCEL_CONTEXT_BUFFERS_OPERANDS_HPP
#define COACCEL_CONTEXT_BUFFERS_OPERANDS_HPP

#include "context/buffers/buffer_table.hpp"

#include <optional>
#include <utility>

namespace coaccel::detail {

/// The ref of operand i of an op.
inline const any_ref& operand_of(const bound_op& o, std::size_t i) noexcept
{
    return *reinterpret_cast<const any_ref*>(static_cast<const char*>(o.op) + o.info->operands[i].offset);
}

/// The elements that a ref names in a buffer of this size. An empty ref counts as the whole buffer, because its op gets
/// the address.
inline element_range elements_of(const any_ref& ref, std::uint64_t size) noexcept
{
    const bool part = ref.size != 0 && ref.size != size;
    return part ? element_range{ref.offset, ref.offset + ref.size} : all_elements;
}

/// Two operands of the op that share an element and of which it writes at least one.
inline std::optional<std::pair<std::size_t, std::size_t>> find_overlap(const bound_op& o) noexcept
{
    const auto& fields = o.info->operands;
    for (std::size_t a = 0; a < fields.size(); ++a) {
        const any_ref& first = operand_of(o, a);
        // Most operands of a list may have no buffer.
        if (first.size == 0)
            continue;
        for (std::size_t b = a + 1; b < fields.size(); ++b)
            if (overlap(first, operand_of(o, b)) && (writes(fields[a].mode) || writes(fields[b].mode)))
                return std::pair(a, b);
    }
    return std::nullopt;
}

} // namespace coaccel::detail

#endif
