#ifndef COACCEL_OPS_PRIM_SCAN_HPP
#define COACCEL_OPS_PRIM_SCAN_HPP

#include <coaccel/ops/prim/reduce.hpp>

namespace coaccel::prim {

/// Which elements count for an element of a scan.
enum class scan_range : std::uint8_t {
    inclusive, ///< The elements up to this one.
    exclusive, ///< The elements before this one.
};
BOOST_DESCRIBE_ENUM(scan_range, inclusive, exclusive)

constexpr bool valid(scan_range r) noexcept
{
    return r <= scan_range::exclusive;
}

/// y = the reduction of the elements of x before or up to the same place, along an axis. The axis has n elements; the
/// packed tensors have the shape outer x n x inner. The result may be x itself. The first element of an exclusive scan
/// is 0 for sums, 1 for products, and for min and max the greatest and least number of the type (infinity for real
/// numbers).
template <number T>
struct scan {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                                  ///< The elements.
    inout<T> y;                               ///< The results.
    reduction what = reduction::sum;          ///< How elements are combined.
    scan_range range = scan_range::inclusive; ///< Whether an element counts for its own result.
    std::uint64_t n = 0;                      ///< The number of elements along the axis.
    std::uint64_t outer = 1;                  ///< The product of the dimensions before the axis.
    std::uint64_t inner = 1;                  ///< The product of the dimensions after the axis.

    error_code check() const noexcept
    {
        if (!valid(what))
            return coaccel::detail::not_enumerated(name, "what", static_cast<unsigned>(what), "prim::reduction");
        if (!valid(range))
            return coaccel::detail::not_enumerated(name, "range", static_cast<unsigned>(range), "prim::scan_range");
        return detail::check_along_axis(*this);
    }

    bool overwrites() const noexcept { return detail::covers(3, {outer, n, inner}, y.size()); }

    COACCEL_PURE_OP(prim, scan, void, x, y, what, range, n, outer, inner)
};

/// The ops of this header for one element type.
template <number T>
using scans_for = type_list<scan<T>>;

} // namespace coaccel::prim

#endif
