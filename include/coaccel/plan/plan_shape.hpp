#ifndef COACCEL_PLAN_PLAN_SHAPE_HPP
#define COACCEL_PLAN_PLAN_SHAPE_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace coaccel {

/// The dimensions of an input or output of a plan, the outermost first. A plan computes the same without them: they
/// tell its users what the elements mean.
///
///     b.input<float>(plan_shape{{28, 28}}, "image");        // one image
///     b.input<float>(batch_of(8, {{28, 28}}), "images");    // eight
///
/// Exceptions: copying, batch_of and to_string throw std::bad_alloc when there is no memory.
struct plan_shape {
    std::vector<std::uint64_t> dims{}; ///< Empty: none are known.
    /// Whether the first dimension counts the rows of a batch, which do not depend on each other.
    bool batched = false;

    /// The product of the dimensions, at most the largest number; 0 without dimensions.
    COACCEL_DECL std::uint64_t count() const noexcept;

    explicit operator bool() const noexcept { return !dims.empty(); } ///< Whether dimensions are known.
    friend bool operator==(const plan_shape&, const plan_shape&) = default;
};

/// The shape of this many rows, each of which has the dimensions of `row`; a row without dimensions is one element.
inline plan_shape batch_of(std::uint64_t rows, plan_shape row)
{
    row.dims.insert(row.dims.begin(), rows);
    row.batched = true;
    return row;
}

/// "28 x 28"; the rows of a batch in brackets: "[8] x 28 x 28".
COACCEL_DECL std::string to_string(const plan_shape& s);

} // namespace coaccel

#endif
