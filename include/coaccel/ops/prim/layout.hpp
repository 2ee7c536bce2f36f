#ifndef COACCEL_OPS_PRIM_LAYOUT_HPP
#define COACCEL_OPS_PRIM_LAYOUT_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/error.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/core/ref.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace coaccel::prim {

/// The largest number of dimensions of a layout.
inline constexpr std::size_t most_dimensions = 6;

/// One number for each dimension, of which the first `rank` count.
using dimensions = std::array<std::uint64_t, most_dimensions>;

namespace detail {

/// The strides of a packed operand. A product that overflows is refused by the op, which computes it again.
constexpr dimensions packed_strides(std::uint64_t rank, const dimensions& dims) noexcept
{
    dimensions made{};
    std::uint64_t next = 1;
    for (std::size_t d = std::min<std::uint64_t>(rank, most_dimensions); d-- > 0;) {
        made[d] = next;
        next *= dims[d];
    }
    return made;
}

} // namespace detail

/// The shape of an elementwise op, and where each of its operands has its elements. Row-major: the last dimension is
/// the one whose elements are adjacent in a packed operand.
///
/// Element (i0, i1, ...) of operand k is at index i0 * strides[k][0] + i1 * strides[k][1] + ... of its ref. A stride of
/// zero repeats an element (broadcasting); the result must not have one in a dimension of more than one element. The
/// operands are numbered in the order of the op's fields.
///
/// A default-constructed layout means that all operands have the same number of elements and are packed.
///
/// Exceptions: no function throws.
template <std::size_t Operands>
struct layout {
    std::uint64_t rank = 0; ///< The number of dimensions, at most 6; 0: all operands are packed and equally long.
    dimensions dims{};      ///< The number of elements in each dimension.
    std::array<dimensions, Operands> strides{}; ///< For each operand, the distance of elements in each dimension.

    /// All operands have this shape and are packed. More than 6 dimensions are refused by the op.
    static constexpr layout packed(std::initializer_list<std::uint64_t> shape) noexcept
    {
        layout made;
        made.rank = shape.size();
        std::copy_n(shape.begin(), std::min(shape.size(), most_dimensions), made.dims.begin());
        for (std::size_t k = 0; k < Operands; ++k)
            made = made.operand(k, detail::packed_strides(made.rank, made.dims));
        return made;
    }

    /// All operands are packed vectors of n elements.
    static constexpr layout vector(std::uint64_t n) noexcept { return packed({n}); }

    /// All operands are packed matrices, row by row.
    static constexpr layout matrix(std::uint64_t rows, std::uint64_t columns) noexcept
    {
        return packed({rows, columns});
    }

    /// As this one, but operand k has one element, which is used everywhere.
    constexpr layout scalar(std::size_t k) const noexcept { return operand(k, {}); }

    /// As this one, but operand k is a vector along the last dimension, repeated in all others.
    constexpr layout row(std::size_t k) const noexcept
    {
        dimensions own{};
        if (rank > 0)
            own[last()] = 1;
        return operand(k, own);
    }

    /// As this one, but operand k is a vector along the dimension before the last one, repeated in all others.
    constexpr layout column(std::size_t k) const noexcept
    {
        dimensions own{};
        if (rank > 1)
            own[last() - 1] = 1;
        return operand(k, own);
    }

    /// As this one, but operand k has these strides.
    constexpr layout operand(std::size_t k, const dimensions& own) const noexcept
    {
        layout made = *this;
        if (k < Operands)
            made.strides[k] = own;
        return made;
    }

    friend constexpr bool operator==(const layout&, const layout&) = default; ///< Compares all fields.

private:
    constexpr std::size_t last() const noexcept { return std::min<std::uint64_t>(rank, most_dimensions) - 1; }
};

namespace detail {

/// An operand of an elementwise op, for its check.
struct placed_operand {
    std::string_view field;
    const any_ref& ref;
};

/// Checks that every element of the operands exists, that the elements of the last operand, which is the result, are
/// distinct, and that the result shares memory with another operand only if both have the same elements in the same
/// order. `strides` has one entry for each operand.
COACCEL_DECL error_code check_layout(std::string_view op, std::uint64_t rank, const dimensions& dims,
                                     std::span<const dimensions> strides,
                                     std::span<const placed_operand> operands) noexcept;

/// Whether the op writes all `size` elements of the result.
COACCEL_DECL bool covers(std::uint64_t rank, const dimensions& dims, std::uint64_t size) noexcept;

/// The shape, such as "2 x 3", or "packed" for a layout without dimensions. Strides follow if an operand is not packed:
/// "2 x 3 (strides [3, 1], [0, 1])".
COACCEL_DECL std::string layout_text(std::uint64_t rank, const dimensions& dims, std::span<const dimensions> strides);

template <std::size_t Operands, std::size_t Placed>
error_code check_layout(std::string_view op, const layout<Operands>& l,
                        const placed_operand (&operands)[Placed]) noexcept
{
    static_assert(Operands == Placed);
    return check_layout(op, l.rank, l.dims, l.strides, operands);
}

} // namespace detail
} // namespace coaccel::prim

namespace coaccel::detail {

template <std::size_t Operands>
inline constexpr std::string (*structure_text<prim::layout<Operands>>)(const void*) = [](const void* value) {
    const auto& l = *static_cast<const prim::layout<Operands>*>(value);
    return prim::detail::layout_text(l.rank, l.dims, l.strides);
};

} // namespace coaccel::detail

#endif
