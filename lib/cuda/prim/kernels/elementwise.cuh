// The kernels of the elementwise ops. Adjacent elements are computed a tile of the block at a time, of which each
// thread loads several packs before it stores the first result: this many loads in flight hide the latency of the
// memory. Other elements, and the rest, are computed one by one, each thread at the distance of the number of threads,
// with indices of 64 bits, so that every grid computes every number of elements.

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

/// Calls `body` for the places of the elements from `first` on.
template <int Operands, class Body>
COACCEL_PRIM_FUNCTION void for_each(const loops<Operands>& l, const Body& body, u64 first = 0)
{
    const u64 step = u64(gridDim.x) * blockDim.x;
    u64 i = first + u64(blockIdx.x) * blockDim.x + threadIdx.x;
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

/// Adjacent elements that a thread loads or stores at a time.
template <class T, u64 Size = 16 / sizeof(T)>
struct alignas(Size * sizeof(T)) pack {
    static constexpr u64 size = Size;
    T of[Size];
};

/// How a tile is divided: `packs` of `size` elements for each thread. At most 16 elements, because the code of the
/// function is repeated for each of them. As in prim_launch::elementwise.
template <u64 Largest, u64 Packs>
struct tile_shape {
    static constexpr u64 size = 16 / Largest;
    static constexpr u64 packs = Packs * size <= 16 ? Packs : 16 / size;
};

/// The size of the largest one of these types.
template <class T, class... Rest>
constexpr u64 largest = sizeof(T) > largest<Rest...> ? sizeof(T) : largest<Rest...>;
template <class T>
constexpr u64 largest<T> = sizeof(T);

/// What a thread has of an operand.
template <class T, class Shape>
struct tile {
    pack<T, Shape::size> packs[Shape::packs];

    /// The packs of this thread in the tile in which its first one is at `first`. With stride 0 all elements are *x.
    COACCEL_PRIM_MEMBER void load(const T* x, u64 stride, u64 first)
    {
        if (stride != 0) {
            COACCEL_PRIM_UNROLL
            for (u64 p = 0; p < Shape::packs; ++p)
                packs[p] = *reinterpret_cast<const pack<T, Shape::size>*>(x + first + p * blockDim.x * Shape::size);
            return;
        }
        const T value = *x;
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < Shape::packs; ++p) {
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < Shape::size; ++k)
                packs[p].of[k] = value;
        }
    }
    COACCEL_PRIM_MEMBER void store(T* y, u64 first) const
    {
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < Shape::packs; ++p)
            *reinterpret_cast<pack<T, Shape::size>*>(y + first + p * blockDim.x * Shape::size) = packs[p];
    }
    COACCEL_PRIM_FUNCTION bool fits(const T* x, u64 stride)
    {
        return stride == 0 || (stride == 1 && reinterpret_cast<u64>(x) % sizeof(pack<T, Shape::size>) == 0);
    }
};

// y = map.of(...) for one, two and three operands: of one element at places in the operands, and of a tile.
template <class Map, class X, class Y>
struct map_one {
    typedef tile_shape<largest<X, Y>, 4> shape;
    Map map;
    const X* x;
    Y* y;

    __device__ void operator()(const u64* at) const { y[at[1]] = map.of(x[at[0]]); }

    __device__ bool adjacent(const loops<2>& l) const
    {
        return l.strides[1][0] == 1 && tile<X, shape>::fits(x, l.strides[0][0]) && tile<Y, shape>::fits(y, 1);
    }
    __device__ void compute(const loops<2>& l, u64 first) const
    {
        tile<X, shape> from;
        tile<Y, shape> to;
        from.load(x, l.strides[0][0], first);
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < shape::packs; ++p) {
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < shape::size; ++k)
                to.packs[p].of[k] = map.of(from.packs[p].of[k]);
        }
        to.store(y, first);
    }
};

template <class Map, class A, class B, class Y>
struct map_two {
    typedef tile_shape<largest<A, B, Y>, 2> shape;
    Map map;
    const A* a;
    const B* b;
    Y* y;

    __device__ void operator()(const u64* at) const { y[at[2]] = map.of(a[at[0]], b[at[1]]); }

    __device__ bool adjacent(const loops<3>& l) const
    {
        return l.strides[2][0] == 1 && tile<A, shape>::fits(a, l.strides[0][0]) &&
               tile<B, shape>::fits(b, l.strides[1][0]) && tile<Y, shape>::fits(y, 1);
    }
    __device__ void compute(const loops<3>& l, u64 first) const
    {
        tile<A, shape> left;
        tile<B, shape> right;
        tile<Y, shape> to;
        left.load(a, l.strides[0][0], first);
        right.load(b, l.strides[1][0], first);
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < shape::packs; ++p) {
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < shape::size; ++k)
                to.packs[p].of[k] = map.of(left.packs[p].of[k], right.packs[p].of[k]);
        }
        to.store(y, first);
    }
};

template <class Map, class A, class B, class C, class Y>
struct map_three {
    typedef tile_shape<largest<A, B, C, Y>, 2> shape;
    Map map;
    const A* a;
    const B* b;
    const C* c;
    Y* y;

    __device__ void operator()(const u64* at) const { y[at[3]] = map.of(a[at[0]], b[at[1]], c[at[2]]); }

    __device__ bool adjacent(const loops<4>& l) const
    {
        return l.strides[3][0] == 1 && tile<A, shape>::fits(a, l.strides[0][0]) &&
               tile<B, shape>::fits(b, l.strides[1][0]) && tile<C, shape>::fits(c, l.strides[2][0]) &&
               tile<Y, shape>::fits(y, 1);
    }
    __device__ void compute(const loops<4>& l, u64 first) const
    {
        tile<A, shape> one;
        tile<B, shape> two;
        tile<C, shape> three;
        tile<Y, shape> to;
        one.load(a, l.strides[0][0], first);
        two.load(b, l.strides[1][0], first);
        three.load(c, l.strides[2][0], first);
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < shape::packs; ++p) {
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < shape::size; ++k)
                to.packs[p].of[k] = map.of(one.packs[p].of[k], two.packs[p].of[k], three.packs[p].of[k]);
        }
        to.store(y, first);
    }
};

/// In place, each thread has loaded its part of a tile before it stores it. Operands that overlap otherwise are
/// refused.
template <int Operands, class Map>
COACCEL_PRIM_FUNCTION void map_each(const loops<Operands>& l, const Map& map)
{
    u64 done = 0;
    if (l.rank == 1 && map.adjacent(l)) {
        const u64 length = u64(blockDim.x) * Map::shape::packs * Map::shape::size;
        for (u64 t = blockIdx.x; t < l.count / length; t += gridDim.x)
            map.compute(l, t * length + threadIdx.x * Map::shape::size);
        done = l.count / length * length;
    }
    for_each(l, map, done);
}

template <class Function, class T>
struct computed_one {
    COACCEL_PRIM_FUNCTION T of(T x) { return computed<T>::store(Function::of(computed<T>::load(x))); }
};

template <class Function, class T>
COACCEL_PRIM_KERNEL unary(loops<2> l, const T* x, T* y)
{
    map_each(l, map_one<computed_one<Function, T>, T, T>{{}, x, y});
}

template <class Function, class T>
struct computed_two {
    COACCEL_PRIM_FUNCTION T of(T a, T b)
    {
        return computed<T>::store(Function::of(computed<T>::load(a), computed<T>::load(b)));
    }
};

template <class Function, class T>
COACCEL_PRIM_KERNEL binary(loops<3> l, const T* a, const T* b, T* c)
{
    map_each(l, map_two<computed_two<Function, T>, T, T, T>{{}, a, b, c});
}

template <class Function, class T>
struct compared {
    COACCEL_PRIM_FUNCTION u8 of(T a, T b) { return Function::of(computed<T>::load(a), computed<T>::load(b)) ? 1 : 0; }
};

template <class Function, class T>
COACCEL_PRIM_KERNEL compare(loops<3> l, const T* a, const T* b, u8* c)
{
    map_each(l, map_two<compared<Function, T>, T, T, u8>{{}, a, b, c});
}

template <class Function, class T>
struct computed_three {
    COACCEL_PRIM_FUNCTION T of(T a, T b, T c)
    {
        return computed<T>::store(Function::of(computed<T>::load(a), computed<T>::load(b), computed<T>::load(c)));
    }
};

template <class Function, class T>
COACCEL_PRIM_KERNEL ternary(loops<4> l, const T* a, const T* b, const T* c, T* d)
{
    map_each(l, map_three<computed_three<Function, T>, T, T, T, T>{{}, a, b, c, d});
}

template <class T>
struct chosen {
    COACCEL_PRIM_FUNCTION T of(u8 mask, T a, T b) { return mask ? a : b; }
};

template <class T>
COACCEL_PRIM_KERNEL where(loops<4> l, const u8* mask, const T* a, const T* b, T* c)
{
    map_each(l, map_three<chosen<T>, u8, T, T, T>{{}, mask, a, b, c});
}

template <class T>
struct clamped {
    T low;
    T high;
    __device__ T of(T x) const
    {
        return computed<T>::store(
            ternary_clamp::of(computed<T>::load(x), computed<T>::load(low), computed<T>::load(high)));
    }
};

template <class T>
COACCEL_PRIM_KERNEL clamp(loops<2> l, const T* x, T* y, T low, T high)
{
    map_each(l, map_one<clamped<T>, T, T>{{low, high}, x, y});
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
COACCEL_PRIM_KERNEL cast(loops<2> l, const From* x, To* y)
{
    map_each(l, map_one<conversion<From, To>, From, To>{{}, x, y});
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
COACCEL_PRIM_KERNEL sequence(u64 count, T* dst, T start, T step)
{
    const u64 distance = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += distance)
        dst[i] = target<T>::of(element_of_sequence(computed<T>::load(start), computed<T>::load(step), i));
}

} // namespace coaccel_prim
