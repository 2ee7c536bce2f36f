#ifndef COACCEL_CORE_FLOAT8_HPP
#define COACCEL_CORE_FLOAT8_HPP

#include <coaccel/core/detail/small_float.hpp>

namespace coaccel {

namespace detail {

struct float8_e4m3_format : small_float_format<4, 3, specials::nan_only, overflow_rule::saturate> {};
struct float8_e5m2_format : small_float_format<5, 2, specials::ieee, overflow_rule::saturate> {};

} // namespace detail

/// OCP E4M3: no infinities, NaN is 0x7f or 0xff, largest value 448.
///
/// Conversion from numbers is explicit, to float implicit. Constructors and operators saturate at 448, as CUDA's
/// constructors do; `convert(x, overflow_rule::nonfinite)` returns NaN beyond 464 instead.
using float8_e4m3 = detail::small_float<detail::float8_e4m3_format>;

/// OCP E5M2: infinities and NaNs as in IEEE formats, largest value 57344.
///
/// Conversion from numbers is explicit, to float implicit. Constructors and operators saturate at 57344, as CUDA's
/// constructors do, and so never produce an infinity; `convert(x, overflow_rule::nonfinite)` does.
using float8_e5m2 = detail::small_float<detail::float8_e5m2_format>;

} // namespace coaccel

#endif
