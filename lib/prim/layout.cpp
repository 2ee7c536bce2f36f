#include <coaccel/core/detail/shape.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/layout.hpp>
#include <coaccel/ops/prim/reduce.hpp>

#include <algorithm>

namespace coaccel::prim::detail {
namespace {

using coaccel::detail::extent;
using coaccel::detail::op_error;
using coaccel::detail::plus;
using coaccel::detail::require;
using coaccel::detail::times;

/// The number of elements from the first to the last one.
extent extent_of(std::uint64_t rank, const dimensions& dims, const dimensions& strides) noexcept
{
    extent sum = 1;
    for (std::size_t d = 0; d < rank; ++d)
        sum = plus(sum, times(dims[d] - 1, strides[d]));
    return sum;
}

/// Whether all elements of the result are different ones: each stride must exceed the extent of the dimensions with
/// smaller strides. Some layouts without common elements are not of this form, and are refused too.
bool distinct(std::uint64_t rank, const dimensions& dims, const dimensions& strides) noexcept
{
    struct dimension {
        std::uint64_t stride, count;
    };
    std::array<dimension, most_dimensions> all{};
    for (std::size_t d = 0; d < rank; ++d)
        all[d] = {strides[d], dims[d]};
    std::sort(all.begin(), all.end(), [](const dimension& a, const dimension& b) { return a.stride < b.stride; });
    // Cannot overflow: the extent of the result was checked.
    std::uint64_t below = 0;
    for (const auto& [stride, count] : all) {
        if (count <= 1)
            continue;
        if (stride <= below)
            return false;
        below += (count - 1) * stride;
    }
    return true;
}

bool same_buffer(const any_ref& a, const any_ref& b) noexcept
{
    return a.device == b.device && a.slot == b.slot && a.version == b.version && a.generation == b.generation;
}

bool same_strides(std::uint64_t rank, const dimensions& dims, const dimensions& a, const dimensions& b) noexcept
{
    for (std::size_t d = 0; d < rank; ++d)
        if (dims[d] > 1 && a[d] != b[d])
            return false;
    return true;
}

error_code check_shape(std::string_view op, std::uint64_t rank, const dimensions& dims) noexcept
{
    if (rank > most_dimensions)
        return op_error(errc::invalid_argument, op,
                        {"shape has ", rank, " dimensions, at most ", most_dimensions, " are possible"});
    extent count = 1;
    for (std::size_t d = 0; d < rank; ++d) {
        if (dims[d] == 0)
            return op_error(errc::invalid_argument, op, {"dimension ", d, " of shape is 0"});
        count = times(count, dims[d]);
    }
    if (!count)
        return op_error(errc::size_overflow, op, {"the number of elements of shape overflows 64 bits"});
    return {};
}

/// The shape of the results of a reduction.
dimensions results_of(const layout<2>& l) noexcept
{
    dimensions made = l.dims;
    for (std::size_t d = 0; d < most_dimensions; ++d)
        if (l.strides[1][d] == 0)
            made[d] = 1;
    return made;
}

error_code check_packed(std::string_view op, std::span<const placed_operand> operands) noexcept
{
    const placed_operand& result = operands.back();
    if (result.ref.size == 0)
        return coaccel::detail::is_empty(op, result.field);
    for (const placed_operand& o : operands)
        if (o.ref.size != result.ref.size)
            return op_error(errc::length_mismatch, op,
                            {o.field, " has ", o.ref.size, " elements, ", result.field, " ", result.ref.size});
    for (const placed_operand& o : operands.first(operands.size() - 1))
        if (same_buffer(o.ref, result.ref) && o.ref.offset != result.ref.offset &&
            o.ref.offset < result.ref.offset + result.ref.size && result.ref.offset < o.ref.offset + o.ref.size)
            return op_error(errc::overlap, op, {result.field, " and ", o.field, " overlap without being the same"});
    return {};
}

} // namespace

error_code check_layout(std::string_view op, std::uint64_t rank, const dimensions& dims,
                        std::span<const dimensions> strides, std::span<const placed_operand> operands) noexcept
{
    if (rank == 0)
        return check_packed(op, operands);
    if (auto ec = check_shape(op, rank, dims))
        return ec;
    for (std::size_t k = 0; k < operands.size(); ++k)
        if (auto ec = require(op, operands[k].field, extent_of(rank, dims, strides[k]), operands[k].ref.size))
            return ec;
    const std::size_t last = operands.size() - 1;
    const placed_operand& result = operands[last];
    if (!distinct(rank, dims, strides[last]))
        return op_error(errc::invalid_argument, op,
                        {"the strides of ", result.field, " give two elements the same place"});
    const std::uint64_t end = result.ref.offset + *extent_of(rank, dims, strides[last]);
    for (std::size_t k = 0; k < last; ++k) {
        const any_ref& other = operands[k].ref;
        if (!same_buffer(other, result.ref) || other.offset >= end ||
            result.ref.offset >= other.offset + *extent_of(rank, dims, strides[k]))
            continue;
        if (other.offset != result.ref.offset || !same_strides(rank, dims, strides[k], strides[last]))
            return op_error(errc::overlap, op,
                            {result.field, " and ", operands[k].field, " overlap without being the same"});
    }
    return {};
}

error_code check_reduction(std::string_view op, const layout<2>& l, const placed_operand& x,
                           const placed_operand& y) noexcept
{
    if (l.rank == 0) {
        if (x.ref.size == 0)
            return coaccel::detail::is_empty(op, x.field);
        return require(op, y.field, 1, y.ref.size);
    }
    if (auto ec = check_shape(op, l.rank, l.dims))
        return ec;
    if (auto ec = require(op, x.field, extent_of(l.rank, l.dims, l.strides[0]), x.ref.size))
        return ec;
    const dimensions results = results_of(l);
    if (auto ec = require(op, y.field, extent_of(l.rank, results, l.strides[1]), y.ref.size))
        return ec;
    if (!distinct(l.rank, results, l.strides[1]))
        return op_error(errc::invalid_argument, op, {"the strides of ", y.field, " give two elements the same place"});
    return {};
}

bool covers_results(const layout<2>& l, std::uint64_t size) noexcept
{
    return l.rank == 0 ? size == 1 : covers(l.rank, results_of(l), size);
}

bool covers(std::uint64_t rank, const dimensions& dims, std::uint64_t size) noexcept
{
    extent count = 1;
    for (std::size_t d = 0; d < rank && d < most_dimensions; ++d)
        count = times(count, dims[d]);
    return rank == 0 || count == size;
}

std::string layout_text(std::uint64_t rank, const dimensions& dims, std::span<const dimensions> strides)
{
    if (rank == 0)
        return "packed";
    const auto shown = static_cast<std::size_t>(std::min<std::uint64_t>(rank, most_dimensions));
    const dimensions packed = packed_strides(rank, dims);
    std::string shape, distances;
    bool all_packed = true;
    for (std::size_t d = 0; d < shown; ++d)
        shape.append(d == 0 ? "" : " x ").append(std::to_string(dims[d]));
    for (const dimensions& s : strides) {
        distances.append(distances.empty() ? "" : ", ")
            .append(coaccel::detail::numbers_text(std::span(s).first(shown)));
        all_packed = all_packed && same_strides(shown, dims, s, packed);
    }
    return all_packed ? shape : shape + " (strides " + distances + ")";
}

} // namespace coaccel::prim::detail
