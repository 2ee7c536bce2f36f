// The element types of the kernels, under the names of dtype, and their conversions. Compiled by NVRTC, without
// headers; tests compile it as C++ too.

namespace coaccel_prim {

#ifdef __CUDACC_RTC__
#define COACCEL_PRIM_FUNCTION static __device__ __forceinline__
#define COACCEL_PRIM_MEMBER __device__ __forceinline__
#define COACCEL_PRIM_KERNEL __global__ void __launch_bounds__(256)
/// A kernel of which a multiprocessor runs this many blocks at a time.
#define COACCEL_PRIM_KERNEL_OF(blocks) __global__ void __launch_bounds__(256, blocks)
#define COACCEL_PRIM_UNROLL _Pragma("unroll")
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

COACCEL_PRIM_FUNCTION u32 bits_of(float x)
{
    return __float_as_uint(x);
}
COACCEL_PRIM_FUNCTION u64 bits_of(double x)
{
    return static_cast<u64>(__double_as_longlong(x));
}
COACCEL_PRIM_FUNCTION float float_of(u32 bits)
{
    return __uint_as_float(bits);
}

/// Rounded before it is added to something, as on the CPU: NVRTC would make one instruction of both.
COACCEL_PRIM_FUNCTION double rounded_product(double a, double b)
{
    return __dmul_rn(a, b);
}

/// The threads of the warp that have this value, as bits. All threads of the warp call it together.
COACCEL_PRIM_FUNCTION u32 threads_with_same(u64 value)
{
    return __match_any_sync(0xffffffffu, value);
}
/// The threads of the warp for which the condition holds, as bits. All threads of the warp call it together.
COACCEL_PRIM_FUNCTION u32 threads_where(bool condition)
{
    return __ballot_sync(0xffffffffu, condition);
}
COACCEL_PRIM_FUNCTION void wait_for_warp()
{
    __syncwarp();
}
/// A number as a type that threads of a warp can exchange.
template <class V>
COACCEL_PRIM_FUNCTION V exchanged(V x)
{
    return x;
}
COACCEL_PRIM_FUNCTION int exchanged(i8 x)
{
    return x;
}
COACCEL_PRIM_FUNCTION int exchanged(u8 x)
{
    return x;
}
COACCEL_PRIM_FUNCTION int exchanged(i16 x)
{
    return x;
}
COACCEL_PRIM_FUNCTION int exchanged(u16 x)
{
    return x;
}
/// The value of this thread of the warp. All threads of the warp call it together.
template <class V>
COACCEL_PRIM_FUNCTION V value_of(V value, u32 thread)
{
    return static_cast<V>(__shfl_sync(0xffffffffu, exchanged(value), static_cast<int>(thread)));
}
COACCEL_PRIM_FUNCTION u32 bits_in(u32 x)
{
    return static_cast<u32>(__popc(x));
}
/// The number of bits up to the highest one that is set.
COACCEL_PRIM_FUNCTION u32 bit_length(u32 x)
{
    return static_cast<u32>(32 - __clz(static_cast<int>(x)));
}
/// Writes a word that other blocks read while this one runs.
template <class Word>
COACCEL_PRIM_FUNCTION void publish(Word* to, Word value)
{
    *static_cast<volatile Word*>(to) = value;
}
/// Reads a word that other blocks publish.
template <class Word>
COACCEL_PRIM_FUNCTION Word read_again(const Word* from)
{
    return *static_cast<const volatile Word*>(from);
}
#else
#define COACCEL_PRIM_MEMBER inline
#define COACCEL_PRIM_KERNEL static void
#define COACCEL_PRIM_KERNEL_OF(blocks) static void
#define COACCEL_PRIM_UNROLL
#endif

typedef float f32;
typedef double f64;

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct f8_e4m3 {
    u8 bits;
};
struct f8_e5m2 {
    u8 bits;
};
struct alignas(8) c64 {
    float re, im;
};
struct alignas(16) c128 {
    double re, im;
};

// As small_float_format in core/detail/small_float.hpp.
template <int Exponent, int Mantissa, bool Infinity, bool Saturates>
struct format {
    static constexpr int mantissa = Mantissa;
    static constexpr int bias = (1 << (Exponent - 1)) - 1;
    static constexpr u32 sign_mask = 1u << (Exponent + Mantissa);
    static constexpr u32 mantissa_mask = (1u << Mantissa) - 1;
    static constexpr u32 exponent_mask = (sign_mask - 1) & ~mantissa_mask;
    static constexpr u32 max_finite = Infinity ? exponent_mask - 1 : sign_mask - 2;
    static constexpr u32 quiet_nan = Infinity ? exponent_mask | (1u << (Mantissa - 1)) : sign_mask - 1;
    static constexpr u32 above_finite = Infinity ? exponent_mask : quiet_nan;
    static constexpr bool saturates = Saturates;
};

template <class T>
struct format_of;
template <>
struct format_of<f16> : format<5, 10, true, false> {};
template <>
struct format_of<bf16> : format<8, 7, true, false> {};
template <>
struct format_of<f8_e4m3> : format<4, 3, false, true> {};
template <>
struct format_of<f8_e5m2> : format<5, 2, true, true> {};

template <class Wide>
struct wide_format;
template <>
struct wide_format<float> {
    typedef u32 bits;
    static constexpr int mantissa = 23;
    static constexpr int bias = 127;
};
template <>
struct wide_format<double> {
    typedef u64 bits;
    static constexpr int mantissa = 52;
    static constexpr int bias = 1023;
};

template <class Bits>
COACCEL_PRIM_FUNCTION Bits shift_to_nearest(Bits value, int shift)
{
    const Bits kept = value >> shift;
    const Bits rest = value & ((Bits(1) << shift) - 1);
    const Bits half = Bits(1) << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

/// To nearest, ties to even, with one rounding.
template <class T, class Wide>
COACCEL_PRIM_FUNCTION T encode(Wide x)
{
    typedef format_of<T> F;
    typedef wide_format<Wide> W;
    typedef typename W::bits Bits;
    constexpr int p = W::mantissa;
    constexpr int drop = p - F::mantissa;
    constexpr int rebias = W::bias - F::bias;
    constexpr Bits one = Bits(1) << p;
    constexpr Bits infinity = Bits(2 * W::bias + 1) << p;
    const Bits bits = bits_of(x);
    const Bits magnitude = bits & (~Bits(0) >> 1);
    const u32 sign = bits == magnitude ? 0 : F::sign_mask;
    T made;
    if (magnitude > infinity) {
        made.bits = static_cast<decltype(made.bits)>(sign | F::quiet_nan | (u32(magnitude >> drop) & F::mantissa_mask));
        return made;
    }
    Bits rounded = 0;
    const int exponent = int(magnitude >> p);
    if (exponent > rebias) {
        rounded = shift_to_nearest(Bits(magnitude - (Bits(rebias) << p)), drop);
    } else {
        const Bits fraction = magnitude & (one - 1);
        const Bits significand = exponent == 0 ? fraction : fraction | one;
        const int shift = drop + rebias + 1 - (exponent == 0 ? 1 : exponent);
        if (shift <= p + 1)
            rounded = shift_to_nearest(significand, shift);
    }
    if (rounded > F::max_finite)
        rounded = F::saturates ? F::max_finite : F::above_finite;
    made.bits = static_cast<decltype(made.bits)>(sign | u32(rounded));
    return made;
}

template <class T>
COACCEL_PRIM_FUNCTION float decode(T x)
{
    typedef format_of<T> F;
    constexpr int lift = 23 - F::mantissa;
    constexpr int rebias = 127 - F::bias;
    const u32 sign = (x.bits & F::sign_mask) ? 1u << 31 : 0;
    const u32 magnitude = x.bits & (F::sign_mask - 1);
    u32 out = magnitude << lift;
    if (rebias != 0) {
        if (magnitude > F::max_finite)
            out |= 0xffu << 23;
        else if (magnitude > F::mantissa_mask)
            out += u32(rebias) << 23;
        else if (magnitude != 0) {
            int up = 1;
            while (!(magnitude << up & (1u << F::mantissa)))
                ++up;
            out = ((magnitude << up & F::mantissa_mask) << lift) | (u32(rebias + 1 - up) << 23);
        }
    }
    return float_of(sign | out);
}

// The hardware converts f16.
#ifdef __CUDACC_RTC__
template <>
__device__ __forceinline__ f16 encode<f16, float>(float x)
{
    f16 made;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(made.bits) : "f"(x));
    return made;
}

template <>
__device__ __forceinline__ float decode<f16>(f16 x)
{
    float made;
    asm("cvt.f32.f16 %0, %1;" : "=f"(made) : "h"(x.bits));
    return made;
}
#endif

/// The type in which elements are computed, and the type of sums.
template <class T>
struct computed {
    typedef T type;
    typedef T sum;
    COACCEL_PRIM_FUNCTION T load(T x) { return x; }
    COACCEL_PRIM_FUNCTION T store(T x) { return x; }
};

template <class T>
struct computed_in_float {
    typedef float type;
    typedef float sum;
    COACCEL_PRIM_FUNCTION float load(T x) { return decode(x); }
    COACCEL_PRIM_FUNCTION T store(float x) { return encode<T>(x); }
};

template <>
struct computed<f16> : computed_in_float<f16> {};
template <>
struct computed<bf16> : computed_in_float<bf16> {};
template <>
struct computed<f32> {
    typedef float type;
    typedef double sum;
    COACCEL_PRIM_FUNCTION float load(float x) { return x; }
    COACCEL_PRIM_FUNCTION float store(float x) { return x; }
};

} // namespace coaccel_prim
