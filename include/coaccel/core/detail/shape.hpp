#ifndef COACCEL_CORE_DETAIL_SHAPE_HPP
#define COACCEL_CORE_DETAIL_SHAPE_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/error.hpp>
#include <coaccel/core/operand.hpp>

#include <cstdint>
#include <numeric>
#include <optional>

// The memory that shapes need, computed without overflow. Shared by the checks of all dense ops.
namespace coaccel::detail {

using extent = std::optional<std::uint64_t>;

constexpr extent times(extent a, extent b) noexcept
{
    std::uint64_t product = 0;
    if (!a || !b || __builtin_mul_overflow(*a, *b, &product))
        return std::nullopt;
    return product;
}

constexpr extent plus(extent a, extent b) noexcept
{
    std::uint64_t sum = 0;
    if (!a || !b || __builtin_add_overflow(*a, *b, &sum))
        return std::nullopt;
    return sum;
}

/// The number of elements from the first to the last of a column-major matrix with this leading dimension.
constexpr extent matrix_extent(std::uint64_t rows, std::uint64_t cols, std::uint64_t ld) noexcept
{
    if (rows == 0 || cols == 0)
        return 0;
    return plus(times(cols - 1, ld), rows);
}

/// The distance between two elements. Unsigned, because the smallest increment has no positive counterpart.
constexpr std::uint64_t step_of(std::int64_t inc) noexcept
{
    return inc < 0 ? -static_cast<std::uint64_t>(inc) : static_cast<std::uint64_t>(inc);
}

/// The number of elements from the first to the last of a strided vector, in either direction.
constexpr extent vector_extent(std::uint64_t n, std::int64_t inc) noexcept
{
    if (n == 0)
        return 0;
    return plus(times(n - 1, step_of(inc)), 1);
}

/// Checks that the operand `field` of `op` has the elements that its shape needs.
inline error_code require(std::string_view op, std::string_view field, extent needed, std::uint64_t available) noexcept
{
    if (!needed)
        return op_error(errc::size_overflow, op, {"the number of elements that ", field, " needs overflows 64 bits"});
    if (*needed <= available)
        return {};
    return op_error(errc::out_of_bounds, op, {field, " has ", available, " elements, needs ", *needed});
}

/// Whether two strided vectors have an element in common. Rows of one matrix interleave without sharing an element, so
/// comparing only their ranges would forbid the usual row swap.
inline bool vectors_touch(const any_ref& x, std::int64_t incx, const any_ref& y, std::int64_t incy,
                          std::uint64_t n) noexcept
{
    if (n == 0 || x.device != y.device || x.slot != y.slot || x.version != y.version || x.generation != y.generation)
        return false;
    const auto x_extent = vector_extent(n, incx);
    const auto y_extent = vector_extent(n, incy);
    if (!x_extent || !y_extent || x.offset >= y.offset + *y_extent || y.offset >= x.offset + *x_extent)
        return false;
    const std::uint64_t distance = x.offset > y.offset ? x.offset - y.offset : y.offset - x.offset;
    // Positions of x and y differ by the offset distance plus a multiple of the gcd of both steps.
    return distance % std::gcd(step_of(incx), step_of(incy)) == 0;
}

} // namespace coaccel::detail

#endif
