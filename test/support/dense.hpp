#ifndef COACCEL_TEST_SUPPORT_DENSE_HPP
#define COACCEL_TEST_SUPPORT_DENSE_HPP

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

// Vectors and matrices in BLAS layout, in memory that is poisoned wherever they have no element. A poisoned value that
// an op reads spreads into its result; one that it overwrites is detected as changed.
namespace test {

using engine = std::mt19937_64;

/// A new seed for each run. A failure reports the seed; COACCEL_TEST_SEED reproduces it.
inline std::uint64_t fresh_seed()
{
    if (const char* given = std::getenv("COACCEL_TEST_SEED"))
        return std::strtoull(given, nullptr, 0);
    return std::random_device{}();
}

template <class T>
auto number(T value)
{
    if constexpr (coaccel::blas::complex_element<T>)
        return std::complex<double>(value);
    else if constexpr (std::is_same_v<T, double>)
        return value;
    else
        return static_cast<double>(static_cast<float>(value));
}

/// The type in which references are computed: double, or complex for complex elements.
template <class T>
using wide = decltype(number(T{}));

inline double conjugate(double value)
{
    return value;
}

inline std::complex<double> conjugate(const std::complex<double>& value)
{
    return std::conj(value);
}

inline std::string text_of(const std::complex<double>& value)
{
    return std::to_string(value.real()) + (value.imag() == 0 ? "" : " + " + std::to_string(value.imag()) + "i");
}

template <class T>
T poison()
{
    return T(std::numeric_limits<float>::quiet_NaN());
}

/// A factor for elements of type T. With complex elements it has an imaginary part.
template <class T>
coaccel::blas::scalar<T> factor(double value)
{
    if constexpr (coaccel::blas::complex_element<T>)
        return T(static_cast<typename T::value_type>(value), static_cast<typename T::value_type>(value / 2));
    else
        return static_cast<coaccel::blas::scalar<T>>(value);
}

template <class T>
T random_element(engine& random)
{
    std::uniform_real_distribution<double> between(-1, 1);
    if constexpr (coaccel::blas::complex_element<T>)
        return T(std::complex<double>(between(random), between(random)));
    else
        return T(static_cast<coaccel::blas::scalar<T>>(between(random)));
}

/// The largest error of one rounding to T at magnitude 1.
template <class T>
constexpr double unit_roundoff()
{
    if constexpr (coaccel::blas::complex_element<T>)
        return 4 * unit_roundoff<typename T::value_type>();
    else if constexpr (std::is_same_v<T, double>)
        return 0x1p-53;
    else if constexpr (std::is_same_v<T, float>)
        return 0x1p-24;
    else if constexpr (std::is_same_v<T, coaccel::half>)
        return 0x1p-11;
    else
        return 0x1p-8;
}

/// The expected element: its value, and the sum of the magnitudes of its terms.
template <class Value>
struct expectation_of {
    Value value{};
    double magnitude = 0;

    void add(const Value& term)
    {
        value += term;
        magnitude += std::abs(term);
    }
};

using expectation = expectation_of<double>;

/// The error bound for `terms` additions in any order, in the type in which T is accumulated, plus one rounding to T.
/// Doubled, because the reference rounds too.
template <class T, class Value>
bool close(const Value& got, const expectation_of<Value>& wanted, std::size_t terms)
{
    constexpr double accumulation = unit_roundoff<coaccel::blas::scalar<T>>();
    constexpr double smallest = 0x1p-24;
    const double bound =
        2 * (static_cast<double>(terms) + 3) * accumulation * wanted.magnitude +
        (coaccel::blas::dense_element<T> ? 0.0 : 2 * unit_roundoff<T>() * std::abs(wanted.value) + smallest);
    return std::abs(got - wanted.value) <= bound;
}

template <class T>
bool same_bits(const T& a, const T& b)
{
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

inline constexpr std::size_t margin = 3;

template <class T>
struct vector {
    vector(std::size_t count, std::int64_t increment)
        : n(count), inc(increment), step(static_cast<std::size_t>(inc < 0 ? -inc : inc)), extent((n - 1) * step + 1),
          data(extent + 2 * margin, poison<T>())
    {}

    vector(std::size_t count, std::int64_t increment, engine& random) : vector(count, increment)
    {
        for (std::size_t i = 0; i < n; ++i)
            (*this)[i] = random_element<T>(random);
    }

    /// A negative increment starts at the end.
    std::size_t place(std::size_t i) const { return margin + (inc < 0 ? n - 1 - i : i) * step; }
    T& operator[](std::size_t i) { return data[place(i)]; }
    wide<T> at(std::size_t i) const { return number(data[place(i)]); }
    coaccel::ref<T> in(const coaccel::buffer<T>& b) const { return b.subspan(margin, extent); }

    /// Checks that `got` has the wanted elements and is otherwise unchanged. Returns where it differs, or an empty
    /// string.
    template <class Wanted>
    std::string difference(const std::vector<T>& got, std::size_t terms, Wanted wanted) const
    {
        if (got.size() != data.size())
            return "another length";
        std::vector<bool> is_element(data.size());
        for (std::size_t i = 0; i < n; ++i) {
            is_element[place(i)] = true;
            if (!close<T>(number(got[place(i)]), wanted(i), terms))
                return "element " + std::to_string(i) + " is " + text_of(number(got[place(i)])) + ", not " +
                       text_of(wanted(i).value);
        }
        for (std::size_t p = 0; p < data.size(); ++p)
            if (!is_element[p] && !same_bits(got[p], data[p]))
                return "place " + std::to_string(p) + " was written";
        return {};
    }

    std::size_t n;
    std::int64_t inc;
    std::size_t step;
    std::size_t extent;
    std::vector<T> data;
};

template <class T>
struct matrix {
    matrix(std::size_t r, std::size_t c, std::size_t extra)
        : rows(r), cols(c), ld(r + extra), extent((c - 1) * ld + r), data(extent + 2 * margin, poison<T>())
    {}

    matrix(std::size_t r, std::size_t c, std::size_t extra, engine& random) : matrix(r, c, extra)
    {
        for (std::size_t j = 0; j < cols; ++j)
            for (std::size_t i = 0; i < rows; ++i)
                (*this)(i, j) = random_element<T>(random);
    }

    std::size_t place(std::size_t i, std::size_t j) const { return margin + i + j * ld; }
    T& operator()(std::size_t i, std::size_t j) { return data[place(i, j)]; }
    wide<T> at(std::size_t i, std::size_t j) const { return number(data[place(i, j)]); }
    coaccel::ref<T> in(const coaccel::buffer<T>& b) const { return b.subspan(margin, extent); }

    /// Zero means "packed" to an op.
    std::uint64_t ld_field() const { return ld == rows ? 0 : ld; }

    template <class Wanted>
    std::string difference(const std::vector<T>& got, std::size_t terms, Wanted wanted) const
    {
        return difference(got, terms, wanted, [](std::size_t, std::size_t) { return true; });
    }

    /// As above, if only some of the elements may have been written.
    template <class Wanted, class Written>
    std::string difference(const std::vector<T>& got, std::size_t terms, Wanted wanted, Written written) const
    {
        if (got.size() != data.size())
            return "another length";
        std::vector<bool> is_element(data.size());
        for (std::size_t j = 0; j < cols; ++j)
            for (std::size_t i = 0; i < rows; ++i) {
                if (!written(i, j))
                    continue;
                const T value = got[place(i, j)];
                is_element[place(i, j)] = true;
                if (!close<T>(number(value), wanted(i, j), terms))
                    return "(" + std::to_string(i) + ", " + std::to_string(j) + ") is " + text_of(number(value)) +
                           ", not " + text_of(wanted(i, j).value);
            }
        for (std::size_t p = 0; p < data.size(); ++p)
            if (!is_element[p] && !same_bits(got[p], data[p]))
                return "place " + std::to_string(p) + " was written";
        return {};
    }

    std::size_t rows;
    std::size_t cols;
    std::size_t ld;
    std::size_t extent;
    std::vector<T> data;
};

} // namespace test

#endif
