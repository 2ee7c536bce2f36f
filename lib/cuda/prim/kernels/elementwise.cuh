// The kernels of the elementwise ops. Each thread computes elements at the distance of the number of threads, with
// indices of 64 bits, so that every grid computes every number of elements.

namespace coaccel_prim {

/// As loop_shape in prim/loop_shape.hpp.
template <int Operands>
struct loops {
    u64 count;
    u64 rank;
    u64 dims[6];
    u64 strides[Operands][6];
};

/// The places of one element in the operands.
template <int Operands>
struct places {
    u64 at[Operands];
};

template <int Operands, class Index>
COACCEL_PRIM_FUNCTION places<Operands> places_of(const loops<Operands>& l, Index i)
{
    places<Operands> p;
    for (int k = 0; k < Operands; ++k)
        p.at[k] = 0;
    for (u64 d = l.rank - 1; d > 0; --d) {
        const Index size = static_cast<Index>(l.dims[d]);
        const Index rest = i / size;
        const u64 inner = i - rest * size;
        for (int k = 0; k < Operands; ++k)
            p.at[k] += inner * l.strides[k][d];
        i = rest;
    }
    for (int k = 0; k < Operands; ++k)
        p.at[k] += u64(i) * l.strides[k][0];
    return p;
}

template <int Operands, class Body>
COACCEL_PRIM_FUNCTION void for_each(const loops<Operands>& l, const Body& body)
{
    const u64 step = u64(gridDim.x) * blockDim.x;
    u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (l.rank == 1) {
        for (; i < l.count; i += step) {
            places<Operands> p;
            for (int k = 0; k < Operands; ++k)
                p.at[k] = i * l.strides[k][0];
            body(p.at);
        }
    } else if (l.count <= 0xffffffffull) {
        // A division of 32 bits takes a fraction of the time.
        for (; i < l.count; i += step)
            body(places_of(l, static_cast<u32>(i)).at);
    } else {
        for (; i < l.count; i += step)
            body(places_of(l, i).at);
    }
}

template <class Function, class T>
struct unary_body {
    const T* x;
    T* y;
    __device__ void operator()(const u64* at) const
    {
        y[at[1]] = computed<T>::store(Function::of(computed<T>::load(x[at[0]])));
    }
};

template <class Function, class T>
__global__ void unary(loops<2> l, const T* x, T* y)
{
    for_each(l, unary_body<Function, T>{x, y});
}

template <class Function, class T>
struct binary_body {
    const T* a;
    const T* b;
    T* c;
    __device__ void operator()(const u64* at) const
    {
        c[at[2]] = computed<T>::store(Function::of(computed<T>::load(a[at[0]]), computed<T>::load(b[at[1]])));
    }
};

template <class Function, class T>
__global__ void binary(loops<3> l, const T* a, const T* b, T* c)
{
    for_each(l, binary_body<Function, T>{a, b, c});
}

template <class Function, class T>
struct compare_body {
    const T* a;
    const T* b;
    u8* c;
    __device__ void operator()(const u64* at) const
    {
        c[at[2]] = Function::of(computed<T>::load(a[at[0]]), computed<T>::load(b[at[1]])) ? 1 : 0;
    }
};

template <class Function, class T>
__global__ void compare(loops<3> l, const T* a, const T* b, u8* c)
{
    for_each(l, compare_body<Function, T>{a, b, c});
}

template <class Function, class T>
struct ternary_body {
    const T* a;
    const T* b;
    const T* c;
    T* d;
    __device__ void operator()(const u64* at) const
    {
        d[at[3]] = computed<T>::store(Function::of(computed<T>::load(a[at[0]]), computed<T>::load(b[at[1]]),
                                                   computed<T>::load(c[at[2]])));
    }
};

template <class Function, class T>
__global__ void ternary(loops<4> l, const T* a, const T* b, const T* c, T* d)
{
    for_each(l, ternary_body<Function, T>{a, b, c, d});
}

template <class T>
struct where_body {
    const u8* mask;
    const T* a;
    const T* b;
    T* c;
    __device__ void operator()(const u64* at) const { c[at[3]] = mask[at[0]] ? a[at[1]] : b[at[2]]; }
};

template <class T>
__global__ void where(loops<4> l, const u8* mask, const T* a, const T* b, T* c)
{
    for_each(l, where_body<T>{mask, a, b, c});
}

template <class T>
struct clamp_body {
    const T* x;
    T* y;
    T low;
    T high;
    __device__ void operator()(const u64* at) const
    {
        y[at[1]] = computed<T>::store(
            ternary_clamp::of(computed<T>::load(x[at[0]]), computed<T>::load(low), computed<T>::load(high)));
    }
};

template <class T>
__global__ void clamp(loops<2> l, const T* x, T* y, T low, T high)
{
    for_each(l, clamp_body<T>{x, y, low, high});
}

// Conversions: `wide` is what an element is converted through, float, double, i64 or u64, each of which has all its
// values.
template <class T>
struct source {
    typedef i64 wide;
    COACCEL_PRIM_FUNCTION i64 load(T x) { return x; }
};
template <>
struct source<u64> {
    typedef u64 wide;
    COACCEL_PRIM_FUNCTION u64 load(u64 x) { return x; }
};
template <>
struct source<f32> {
    typedef float wide;
    COACCEL_PRIM_FUNCTION float load(float x) { return x; }
};
template <>
struct source<f64> {
    typedef double wide;
    COACCEL_PRIM_FUNCTION double load(double x) { return x; }
};
template <class T>
struct small_source {
    typedef float wide;
    COACCEL_PRIM_FUNCTION float load(T x) { return decode(x); }
};
template <>
struct source<f16> : small_source<f16> {};
template <>
struct source<bf16> : small_source<bf16> {};
template <>
struct source<f8_e4m3> : small_source<f8_e4m3> {};
template <>
struct source<f8_e5m2> : small_source<f8_e5m2> {};

/// A double that rounds to a narrow type exactly like the integer: beyond 53 bits, the tail becomes one bit.
COACCEL_PRIM_FUNCTION double rounding_double(bool negative, u64 magnitude)
{
    if (magnitude >> 53)
        magnitude = ((magnitude >> 11) | ((magnitude & 0x7ff) != 0 ? 1 : 0)) << 11;
    const double x = static_cast<double>(magnitude);
    return negative ? -x : x;
}

template <class T>
struct target {
    // The integers.
    static constexpr bool is_signed = T(-1) < T(0);
    static constexpr int value_bits = 8 * sizeof(T) - (is_signed ? 1 : 0);
    static constexpr T most = static_cast<T>(~u64(0) >> (64 - value_bits));
    static constexpr T least = is_signed ? static_cast<T>(-most - 1) : T(0);
    COACCEL_PRIM_FUNCTION T of(i64 x) { return static_cast<T>(x); }
    COACCEL_PRIM_FUNCTION T of(u64 x) { return static_cast<T>(x); }
    COACCEL_PRIM_FUNCTION T of(float x)
    {
        return limited<T, float>(x, least, most, 2.0f * static_cast<float>(u64(1) << (value_bits - 1)));
    }
    COACCEL_PRIM_FUNCTION T of(double x)
    {
        return limited<T, double>(x, least, most, 2.0 * static_cast<double>(u64(1) << (value_bits - 1)));
    }
};
template <>
struct target<f32> {
    template <class Wide>
    COACCEL_PRIM_FUNCTION float of(Wide x)
    {
        return static_cast<float>(x);
    }
};
template <>
struct target<f64> {
    template <class Wide>
    COACCEL_PRIM_FUNCTION double of(Wide x)
    {
        return static_cast<double>(x);
    }
};
template <class T>
struct small_target {
    COACCEL_PRIM_FUNCTION T of(float x) { return encode<T>(x); }
    COACCEL_PRIM_FUNCTION T of(double x) { return encode<T>(x); }
    COACCEL_PRIM_FUNCTION T of(i64 x) { return encode<T>(rounding_double(x < 0, x < 0 ? 0 - u64(x) : u64(x))); }
    COACCEL_PRIM_FUNCTION T of(u64 x) { return encode<T>(rounding_double(false, x)); }
};
template <>
struct target<f16> : small_target<f16> {};
template <>
struct target<bf16> : small_target<bf16> {};
template <>
struct target<f8_e4m3> : small_target<f8_e4m3> {};
template <>
struct target<f8_e5m2> : small_target<f8_e5m2> {};
template <>
struct target<c64> {
    template <class Wide>
    COACCEL_PRIM_FUNCTION c64 of(Wide x)
    {
        return c64{static_cast<float>(x), 0.0f};
    }
};
template <>
struct target<c128> {
    template <class Wide>
    COACCEL_PRIM_FUNCTION c128 of(Wide x)
    {
        return c128{static_cast<double>(x), 0.0};
    }
};

template <class From, class To>
struct conversion {
    COACCEL_PRIM_FUNCTION To of(From x) { return target<To>::of(source<From>::load(x)); }
};
template <>
struct conversion<c64, c64> {
    COACCEL_PRIM_FUNCTION c64 of(c64 x) { return x; }
};
template <>
struct conversion<c128, c128> {
    COACCEL_PRIM_FUNCTION c128 of(c128 x) { return x; }
};
template <>
struct conversion<c64, c128> {
    COACCEL_PRIM_FUNCTION c128 of(c64 x) { return c128{x.re, x.im}; }
};
template <>
struct conversion<c128, c64> {
    COACCEL_PRIM_FUNCTION c64 of(c128 x) { return c64{static_cast<float>(x.re), static_cast<float>(x.im)}; }
};

template <class From, class To>
struct cast_body {
    const From* x;
    To* y;
    __device__ void operator()(const u64* at) const { y[at[1]] = conversion<From, To>::of(x[at[0]]); }
};

template <class From, class To>
__global__ void cast(loops<2> l, const From* x, To* y)
{
    for_each(l, cast_body<From, To>{x, y});
}

// Real numbers are computed in f64, integers in 64 bits.
COACCEL_PRIM_FUNCTION double element_of_sequence(double start, double step, u64 i)
{
    return sequence_element(start, step, i);
}
COACCEL_PRIM_FUNCTION double element_of_sequence(float start, float step, u64 i)
{
    return sequence_element(start, step, i);
}
template <class C>
COACCEL_PRIM_FUNCTION i64 element_of_sequence(C start, C step, u64 i)
{
    return static_cast<i64>(static_cast<u64>(start) + i * static_cast<u64>(step));
}

template <class T>
__global__ void sequence(u64 count, T* dst, T start, T step)
{
    const u64 distance = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += distance)
        dst[i] = target<T>::of(element_of_sequence(computed<T>::load(start), computed<T>::load(step), i));
}

} // namespace coaccel_prim
