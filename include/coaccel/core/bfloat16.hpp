#ifndef COACCEL_CORE_BFLOAT16_HPP
#define COACCEL_CORE_BFLOAT16_HPP

#include <coaccel/core/detail/small_float.hpp>

namespace coaccel {

namespace detail {

struct bfloat16_format : small_float_format<8, 7, specials::ieee, overflow_rule::nonfinite> {};

} // namespace detail

/// The upper half of a float: 8 exponent and 7 mantissa bits; overflow is infinity.
///
/// Conversion from numbers is explicit, to float implicit.
using bfloat16 = detail::small_float<detail::bfloat16_format>;

} // namespace coaccel

#endif
