#ifndef COACCEL_PRIM_FUNCTIONS_HPP
#define COACCEL_PRIM_FUNCTIONS_HPP

#include <cmath>
#include <cstdint>

// The functions of functions.cuh as C++.

#define COACCEL_PRIM_FUNCTION static inline

// Declarations for functions.cuh: the kernels have the same ones.
namespace coaccel_prim {

using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

using std::atan2;
using std::ceil;
using std::cos;
using std::erf;
using std::exp;
using std::expm1;
using std::fabs;
using std::floor;
using std::fma;
using std::fmod;
using std::hypot;
using std::log;
using std::log1p;
using std::pow;
using std::round;
using std::sin;
using std::sqrt;
using std::tan;
using std::tanh;

static inline double rounded_product(double a, double b)
{
    return a * b;
}

} // namespace coaccel_prim

#include "prim/functions.cuh"

#endif
