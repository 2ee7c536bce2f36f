#ifndef COACCEL_TEST_GPU_PRODUCTS_HPP
#define COACCEL_TEST_GPU_PRODUCTS_HPP

#include "gpu.hpp"
#include "support/dense.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

// For tests of large products; small ones, against a reference, are in test/unit/ops.
namespace test {

/// Numbers from -most to most.
template <class T>
std::vector<T> random_numbers(std::size_t count, unsigned seed, float most = 1)
{
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> between(-most, most);
    std::vector<T> made(count);
    for (auto& x : made) {
        const float real = between(random);
        if constexpr (coaccel::blas::complex_element<T>)
            x = T(real, between(random));
        else
            x = T(real);
    }
    return made;
}

template <class Op>
coaccel::error_code listed_error(device_fixture& f, const Op& op)
{
    const auto done = exec_listed(f, op);
    return done ? coaccel::error_code() : done.error();
}

template <class Op>
void run_listed(device_fixture& f, const Op& op)
{
    const auto failed = listed_error(f, op);
    REQUIRE_MESSAGE(!failed, failed.message());
}

/// Infinite if there is NaN in one of the results only.
template <class T>
double greatest_distance(const std::vector<T>& a, const std::vector<T>& b)
{
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (same_bits(a[i], b[i]))
            continue;
        const double between = std::abs(number(a[i]) - number(b[i]));
        if (std::isnan(between))
            return std::numeric_limits<double>::infinity();
        most = std::max(most, between);
    }
    return most;
}

/// A multiple of the unit roundoff of T at the magnitude of a sum of k products of numbers below 1. A result of 16 bits
/// is rounded once, others in each step.
template <class T>
double product_bound(std::size_t k)
{
    return (sizeof(T) == 2 ? 16 : 64) * unit_roundoff<T>() * std::sqrt(static_cast<double>(k));
}

} // namespace test

#endif
