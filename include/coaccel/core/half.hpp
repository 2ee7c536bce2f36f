#ifndef COACCEL_CORE_HALF_HPP
#define COACCEL_CORE_HALF_HPP

#include <coaccel/core/detail/small_float.hpp>

namespace coaccel {

namespace detail {

struct half_format : small_float_format<5, 10, specials::ieee, overflow_rule::nonfinite> {};

} // namespace detail

/// IEEE binary16: 5 exponent and 10 mantissa bits, largest value 65504; overflow is infinity.
///
/// Conversion from numbers is explicit, to float implicit.
using half = detail::small_float<detail::half_format>;

} // namespace coaccel

#endif
