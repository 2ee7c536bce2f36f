#ifndef COACCEL_CORE_DETAIL_SMALL_FLOAT_HPP
#define COACCEL_CORE_DETAIL_SMALL_FLOAT_HPP

#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace coaccel {

/// How a conversion to a narrow float handles a value that rounds beyond the largest finite one.
enum class overflow_rule : std::uint8_t {
    /// The largest finite value, with the sign kept; also for infinities.
    saturate,
    /// An infinity, or NaN where the format has no infinities.
    nonfinite,
};

namespace detail {

enum class specials : std::uint8_t {
    /// The largest exponent is reserved for infinities and NaNs.
    ieee,
    /// Only the all-ones pattern is NaN, and there are no infinities.
    nan_only,
};

template <int ExponentBits, int MantissaBits, specials Specials, overflow_rule Default>
struct small_float_format {
    static constexpr int mantissa_bits = MantissaBits;
    static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
    static constexpr bool has_infinity = Specials == specials::ieee;
    static constexpr overflow_rule default_overflow = Default;

    using bits_type = std::conditional_t<(ExponentBits + MantissaBits < 8), std::uint8_t, std::uint16_t>;
    static_assert(1 + ExponentBits + MantissaBits == 8 * sizeof(bits_type));

    static constexpr unsigned sign_mask = 1u << (ExponentBits + MantissaBits);
    static constexpr unsigned mantissa_mask = (1u << MantissaBits) - 1;
    static constexpr unsigned exponent_mask = (sign_mask - 1) & ~mantissa_mask;
    static constexpr unsigned max_finite = has_infinity ? exponent_mask - 1 : sign_mask - 2;
    static constexpr unsigned quiet_nan = has_infinity ? exponent_mask | (1u << (MantissaBits - 1)) : sign_mask - 1;
    static constexpr unsigned above_finite = has_infinity ? exponent_mask : quiet_nan;
};

template <class T>
struct wide_float;

template <>
struct wide_float<float> {
    using bits_type = std::uint32_t;
    static constexpr int mantissa_bits = 23;
    static constexpr int bias = 127;
};

template <>
struct wide_float<double> {
    using bits_type = std::uint64_t;
    static constexpr int mantissa_bits = 52;
    static constexpr int bias = 1023;
};

/// `value / 2^shift`, to nearest, ties to even; `shift` is at least 1.
template <class Bits>
constexpr Bits shift_to_nearest(Bits value, int shift) noexcept
{
    const Bits kept = value >> shift;
    const Bits rest = value & ((Bits{1} << shift) - 1);
    const Bits half = Bits{1} << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

template <class Format, class Wide>
constexpr typename Format::bits_type encode(Wide x, overflow_rule rule) noexcept
{
    using wide = wide_float<Wide>;
    using bits_type = typename wide::bits_type;
    constexpr int p = wide::mantissa_bits;
    constexpr int drop = p - Format::mantissa_bits;
    constexpr bits_type implicit_one = bits_type{1} << p;
    constexpr bits_type infinity = bits_type(2 * wide::bias + 1) << p;
    constexpr int rebias = wide::bias - Format::bias;

    const bits_type bits = std::bit_cast<bits_type>(x);
    const bits_type magnitude = bits & (~bits_type{0} >> 1);
    const unsigned sign = bits == magnitude ? 0 : Format::sign_mask;

    if (magnitude > infinity) {
        const unsigned payload = unsigned(magnitude >> drop) & Format::mantissa_mask;
        return static_cast<typename Format::bits_type>(sign | Format::quiet_nan | payload);
    }

    bits_type rounded = 0;
    const int exponent = int(magnitude >> p);
    if (exponent > rebias) {
        // A carry out of the mantissa increments the exponent, which is correct.
        rounded = shift_to_nearest(magnitude - (bits_type(rebias) << p), drop);
    } else {
        const bits_type fraction = magnitude & (implicit_one - 1);
        const bits_type significand = exponent == 0 ? fraction : fraction | implicit_one;
        const int shift = drop + rebias + 1 - (exponent == 0 ? 1 : exponent);
        // With a larger shift the value is below half of the smallest subnormal and rounds to zero.
        if (shift <= p + 1)
            rounded = shift_to_nearest(significand, shift);
    }

    if (rounded > Format::max_finite)
        rounded = rule == overflow_rule::saturate ? Format::max_finite : Format::above_finite;
    return static_cast<typename Format::bits_type>(sign | unsigned(rounded));
}

// In integer arithmetic, because widening a subnormal in floating point depends on the thread's flush-to-zero mode.
template <class Format>
constexpr float decode(typename Format::bits_type bits) noexcept
{
    using wide = wide_float<float>;
    constexpr int lift = wide::mantissa_bits - Format::mantissa_bits;
    constexpr int rebias = wide::bias - Format::bias;

    const std::uint32_t sign = (bits & Format::sign_mask) ? std::uint32_t{1} << 31 : 0;
    const std::uint32_t magnitude = bits & (Format::sign_mask - 1);
    std::uint32_t out = magnitude << lift;
    if constexpr (rebias != 0) {
        if (magnitude > Format::max_finite) {
            out |= std::uint32_t{0xff} << wide::mantissa_bits;
        } else if (magnitude > Format::mantissa_mask) {
            out += std::uint32_t(rebias) << wide::mantissa_bits;
        } else if (magnitude != 0) {
            const int up = std::countl_zero(magnitude) - (31 - Format::mantissa_bits);
            out = ((magnitude & ~std::bit_floor(magnitude)) << (lift + up)) |
                  (std::uint32_t(rebias + 1 - up) << wide::mantissa_bits);
        }
    }
    return std::bit_cast<float>(sign | out);
}

/// A double that rounds to any narrow format exactly like the integer.
template <std::integral I>
constexpr double to_rounding_double(I value) noexcept
{
    const bool negative = value < I{0};
    std::uint64_t magnitude = static_cast<std::uint64_t>(value);
    if (negative)
        magnitude = 0 - magnitude;
    // Beyond 53 bits the tail is folded into one sticky bit, so that only the narrow format rounds.
    if (magnitude >> 53)
        magnitude = ((magnitude >> 11) | ((magnitude & 0x7ff) != 0)) << 11;
    return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

/// A number stored in 8 or 16 bits; its arithmetic uses float.
///
/// Conversions to it are explicit and round once, to nearest even; the conversion to float is implicit and exact, as
/// for CUDA's types. A conversion to it keeps the sign of a NaN and makes it quiet. Operators round the exact result as
/// the constructor does.
template <class Format>
class small_float {
public:
    using format = Format;
    using bits_type = typename Format::bits_type;

    small_float() = default;
    explicit constexpr small_float(float x) noexcept : bits_(encode<Format>(x, Format::default_overflow)) {}
    explicit constexpr small_float(double x) noexcept : bits_(encode<Format>(x, Format::default_overflow)) {}

    template <std::integral I>
        requires(sizeof(I) <= sizeof(std::uint64_t))
    explicit constexpr small_float(I x) noexcept : small_float(to_rounding_double(x))
    {}

    /// Converts with the given overflow rule instead of the type's default.
    [[nodiscard]] static constexpr small_float convert(float x, overflow_rule rule) noexcept
    {
        return from_bits(encode<Format>(x, rule));
    }

    /// \copydoc convert
    [[nodiscard]] static constexpr small_float convert(double x, overflow_rule rule) noexcept
    {
        return from_bits(encode<Format>(x, rule));
    }

    [[nodiscard]] static constexpr small_float from_bits(bits_type bits) noexcept
    {
        small_float x{};
        x.bits_ = bits;
        return x;
    }

    [[nodiscard]] constexpr bits_type bits() const noexcept { return bits_; }

    constexpr operator float() const noexcept { return decode<Format>(bits_); }

    friend constexpr small_float operator+(small_float x) noexcept { return x; }

    friend constexpr small_float operator-(small_float x) noexcept
    {
        return from_bits(static_cast<bits_type>(x.bits_ ^ Format::sign_mask));
    }

    // A float has more than twice the digits of any format here, so rounding the float result again gives the correctly
    // rounded result.
    friend constexpr small_float operator+(small_float a, small_float b) noexcept
    {
        return small_float(float(a) + float(b));
    }

    friend constexpr small_float operator-(small_float a, small_float b) noexcept
    {
        return small_float(float(a) - float(b));
    }

    friend constexpr small_float operator*(small_float a, small_float b) noexcept
    {
        return small_float(float(a) * float(b));
    }

    friend constexpr small_float operator/(small_float a, small_float b) noexcept
    {
        return small_float(float(a) / float(b));
    }

    constexpr small_float& operator+=(small_float b) noexcept { return *this = *this + b; }
    constexpr small_float& operator-=(small_float b) noexcept { return *this = *this - b; }
    constexpr small_float& operator*=(small_float b) noexcept { return *this = *this * b; }
    constexpr small_float& operator/=(small_float b) noexcept { return *this = *this / b; }

    friend constexpr bool operator==(small_float a, small_float b) noexcept { return float(a) == float(b); }

    friend constexpr std::partial_ordering operator<=>(small_float a, small_float b) noexcept
    {
        return float(a) <=> float(b);
    }

    friend constexpr small_float abs(small_float x) noexcept
    {
        return from_bits(static_cast<bits_type>(x.magnitude()));
    }

    friend constexpr bool isfinite(small_float x) noexcept { return x.magnitude() <= Format::max_finite; }

    friend constexpr bool isinf(small_float x) noexcept
    {
        return Format::has_infinity && x.magnitude() == Format::above_finite;
    }

    friend constexpr bool isnan(small_float x) noexcept { return !isfinite(x) && !isinf(x); }

private:
    constexpr unsigned magnitude() const noexcept { return bits_ & (Format::sign_mask - 1); }

    bits_type bits_;
};

} // namespace detail
} // namespace coaccel

namespace std {

template <class Format>
class numeric_limits<coaccel::detail::small_float<Format>> {
    using type = coaccel::detail::small_float<Format>;
    using bits_type = typename Format::bits_type;

    static constexpr type make(unsigned bits) noexcept { return type::from_bits(static_cast<bits_type>(bits)); }

    // floor(n * log10(2)) for the small n that occur here.
    static constexpr int decimal(int n) noexcept { return n * 643 / 2136; }

public:
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = true;
    static constexpr bool is_integer = false;
    static constexpr bool is_exact = false;
    static constexpr bool is_bounded = true;
    static constexpr bool is_modulo = false;
    // The formats may be IEC 559, but these types raise no exception flags and have only one rounding direction.
    static constexpr bool is_iec559 = false;
    static constexpr bool has_infinity = Format::has_infinity;
    static constexpr bool has_quiet_NaN = true;
    static constexpr bool has_signaling_NaN = Format::has_infinity;
    static constexpr float_denorm_style has_denorm = denorm_present;
    static constexpr bool has_denorm_loss = false;
    static constexpr float_round_style round_style = round_to_nearest;
    static constexpr bool traps = false;
    static constexpr bool tinyness_before = false;
    static constexpr int radix = 2;
    static constexpr int digits = Format::mantissa_bits + 1;
    static constexpr int digits10 = decimal(digits - 1);
    static constexpr int max_digits10 = 2 + decimal(digits);
    static constexpr int min_exponent = 2 - Format::bias;
    static constexpr int min_exponent10 = -decimal(1 - min_exponent);
    static constexpr int max_exponent = Format::has_infinity ? Format::bias + 1 : Format::bias + 2;
    static constexpr int max_exponent10 = decimal(max_exponent);

    static constexpr type min() noexcept { return make(Format::mantissa_mask + 1); }
    static constexpr type max() noexcept { return make(Format::max_finite); }
    static constexpr type lowest() noexcept { return make(Format::sign_mask | Format::max_finite); }
    static constexpr type denorm_min() noexcept { return make(1); }
    static constexpr type epsilon() noexcept { return type(1.0f / (1 << Format::mantissa_bits)); }
    static constexpr type round_error() noexcept { return type(0.5f); }
    static constexpr type infinity() noexcept { return make(has_infinity ? Format::above_finite : 0); }
    static constexpr type quiet_NaN() noexcept { return make(Format::quiet_nan); }
    static constexpr type signaling_NaN() noexcept { return make(has_signaling_NaN ? Format::exponent_mask | 1 : 0); }
};

template <class Format>
struct hash<coaccel::detail::small_float<Format>> {
    size_t operator()(coaccel::detail::small_float<Format> x) const noexcept { return hash<float>{}(x); }
};

} // namespace std

#endif
