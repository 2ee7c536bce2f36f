#ifndef COACCEL_TEST_SUPPORT_PRIM_HPP
#define COACCEL_TEST_SUPPORT_PRIM_HPP

#include <coaccel/core/op_list.hpp>
#include <coaccel/ops/prim/types.hpp>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

// For tests of the ops in `prim`.
namespace test {

template <class F, class... Ts>
void for_each_type(coaccel::type_list<Ts...>, F f)
{
    (f.template operator()<Ts>(), ...);
}

template <class T>
double as_double(const T& x)
{
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<double>(x);
    else
        return static_cast<double>(static_cast<float>(x));
}

/// The distance between 1 and the next number.
template <coaccel::prim::floating T>
double epsilon()
{
    return as_double(std::numeric_limits<T>::epsilon());
}

/// Elements whose bytes are all 0xdb, which no op of a test computes.
template <class T>
std::vector<T> poisoned(std::size_t count)
{
    std::vector<T> made(count);
    std::memset(static_cast<void*>(made.data()), 0xdb, count * sizeof(T));
    return made;
}

/// Whether two elements have the same bytes.
template <class T>
bool same_bytes(const T& a, const T& b)
{
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
bool is_nan(const T& x)
{
    return std::isnan(as_double(x));
}

/// Equal, or both NaN, or closer than `tolerance`.
inline bool close(double got, double expected, double tolerance)
{
    if (std::isnan(expected) || std::isnan(got))
        return std::isnan(expected) && std::isnan(got);
    return got == expected || std::abs(got - expected) <= tolerance;
}

/// Numbers of the range [low, high], also those of integer types.
template <class T>
std::vector<T> random_elements(std::mt19937& random, std::size_t count, double low, double high)
{
    std::uniform_real_distribution<double> distribution(low, high);
    std::vector<T> made(count);
    for (auto& x : made)
        x = static_cast<T>(distribution(random));
    return made;
}

/// Any bits.
template <class T>
std::vector<T> random_bits(std::mt19937& random, std::size_t count)
{
    std::vector<T> made(count);
    for (auto& x : made) {
        std::uint64_t bits[2] = {std::uint64_t(random()) << 32 | random(), std::uint64_t(random()) << 32 | random()};
        static_assert(sizeof(T) <= sizeof(bits));
        std::memcpy(static_cast<void*>(&x), bits, sizeof(T));
    }
    return made;
}

/// Runs an op as a list: async_exec is then compiled once, and not for each of hundreds of op types.
template <class Fixture, class Op>
coaccel::error_code run_listed(Fixture& f, const Op& op)
{
    return f.error_of(coaccel::op_list().add(op));
}

} // namespace test

#endif
