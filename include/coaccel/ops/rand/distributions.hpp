#ifndef COACCEL_OPS_RAND_DISTRIBUTIONS_HPP
#define COACCEL_OPS_RAND_DISTRIBUTIONS_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/ops/rand/generator.hpp>

#include <cmath>
#include <concepts>

namespace coaccel::rand {

/// The types of real numbers.
template <class T>
concept real = std::same_as<T, float> || std::same_as<T, double>;

/// The types of random bits.
template <class T>
concept word = std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

namespace detail {

inline error_code check_draw(std::string_view op, const generator& from, std::uint64_t count) noexcept
{
    if (count == 0)
        return coaccel::detail::is_empty(op, "dst");
    if (auto ec = from.check(op))
        return ec;
    if (!is_quasi_random(from.options().algorithm) || count % from.options().dimensions == 0)
        return {};
    return coaccel::detail::op_error(
        errc::length_mismatch, op,
        {"dst has ", count, " elements, which is not a multiple of the ", from.options().dimensions, " dimensions"});
}

inline error_code check_normal(std::string_view op, double mean, double stddev) noexcept
{
    if (!std::isfinite(mean))
        return coaccel::detail::op_error(errc::invalid_argument, op, {"mean is not a finite number"});
    if (std::isfinite(stddev) && stddev >= 0)
        return {};
    return coaccel::detail::op_error(errc::invalid_argument, op, {"stddev is negative or not a finite number"});
}

} // namespace detail

/// Fills dst with random bits. A generator of 64-bit Sobol numbers has only bits of 64 bits, one of 32-bit Sobol
/// numbers only bits of 32 bits.
template <word T>
struct bits {
    using value_type = T;

    out<T> dst;     ///< The elements to fill.
    generator from; ///< The generator.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_draw(name, from, dst.size()))
            return ec;
        const auto a = from.options().algorithm;
        const bool wide = a == algorithm::sobol64 || a == algorithm::scrambled_sobol64;
        if (!is_quasi_random(a) || wide == (sizeof(T) == 8))
            return {};
        return coaccel::detail::op_error(errc::invalid_argument, name,
                                         {"from has numbers of ", wide ? 64 : 32, " bits, dst of ", 8 * sizeof(T)});
    }

    std::uint64_t state() const noexcept { return from.id(); }
    bool accepts(const drawn& d) const noexcept { return detail::is_value(d); }

    COACCEL_OP(rand, bits, drawn, dst, from)
};

/// Fills dst with numbers that are uniformly distributed over (0, 1].
template <real T>
struct uniform {
    using value_type = T;

    out<T> dst;     ///< The elements to fill.
    generator from; ///< The generator.

    error_code check() const noexcept { return detail::check_draw(name, from, dst.size()); }

    std::uint64_t state() const noexcept { return from.id(); }
    bool accepts(const drawn& d) const noexcept { return detail::is_value(d); }

    COACCEL_OP(rand, uniform, drawn, dst, from)
};

/// Fills dst with normally distributed numbers.
template <real T>
struct normal {
    using value_type = T;

    out<T> dst;     ///< The elements to fill.
    generator from; ///< The generator.
    T mean = 0;     ///< The mean.
    T stddev = 1;   ///< The standard deviation.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_draw(name, from, dst.size()))
            return ec;
        return detail::check_normal(name, mean, stddev);
    }

    std::uint64_t state() const noexcept { return from.id(); }
    bool accepts(const drawn& d) const noexcept { return detail::is_value(d); }

    COACCEL_OP(rand, normal, drawn, dst, from, mean, stddev)
};

/// Fills dst with numbers whose logarithms are normally distributed.
template <real T>
struct log_normal {
    using value_type = T;

    out<T> dst;     ///< The elements to fill.
    generator from; ///< The generator.
    T mean = 0;     ///< The mean of the logarithms.
    T stddev = 1;   ///< The standard deviation of the logarithms.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_draw(name, from, dst.size()))
            return ec;
        return detail::check_normal(name, mean, stddev);
    }

    std::uint64_t state() const noexcept { return from.id(); }
    bool accepts(const drawn& d) const noexcept { return detail::is_value(d); }

    COACCEL_OP(rand, log_normal, drawn, dst, from, mean, stddev)
};

/// Fills dst with Poisson distributed numbers.
struct poisson {
    out<std::uint32_t> dst; ///< The elements to fill.
    generator from;         ///< The generator.
    double lambda = 1;      ///< The mean and the variance; from 1e-9 to 400000.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_draw(name, from, dst.size()))
            return ec;
        if (lambda >= 1e-9 && lambda <= 400000)
            return {};
        return coaccel::detail::op_error(errc::invalid_argument, name, {"lambda is not from 1e-9 to 400000"});
    }

    std::uint64_t state() const noexcept { return from.id(); }
    bool accepts(const drawn& d) const noexcept { return detail::is_value(d); }

    COACCEL_OP(rand, poisson, drawn, dst, from, lambda)
};

/// All ops of this header.
using ops = type_list<bits<std::uint32_t>, bits<std::uint64_t>, uniform<float>, uniform<double>, normal<float>,
                      normal<double>, log_normal<float>, log_normal<double>, poisson>;

} // namespace coaccel::rand

#endif
