// What the kernels of top_k and sort share.

namespace coaccel_prim {

template <class T>
struct key_of {
    COACCEL_PRIM_FUNCTION u64 of(T x) { return integer_key(x); }
};
template <>
struct key_of<f16> {
    COACCEL_PRIM_FUNCTION u64 of(f16 x) { return real_key<u32>(x.bits, 0xffff, 0x7c00); }
};
template <>
struct key_of<bf16> {
    COACCEL_PRIM_FUNCTION u64 of(bf16 x) { return real_key<u32>(x.bits, 0xffff, 0x7f80); }
};
template <>
struct key_of<f32> {
    COACCEL_PRIM_FUNCTION u64 of(f32 x) { return real_key<u32>(bits_of(x), 0xffffffff, 0x7f800000); }
};
template <>
struct key_of<f64> {
    COACCEL_PRIM_FUNCTION u64 of(f64 x) { return real_key<u64>(bits_of(x), ~u64(0), 0x7ff0000000000000ull); }
};

/// The number by which an element is sorted in ascending order. `flip` is 0, or all bits of a key for the other order.
template <class T>
COACCEL_PRIM_FUNCTION u64 sort_key(T x, u64 flip)
{
    return key_of<T>::of(x) ^ flip;
}

/// As order_slices in prim/order_slices.hpp.
struct order_slices {
    u64 count;
    u64 length;
};

struct adding_counts {
    typedef u64 state;
    COACCEL_PRIM_FUNCTION u64 join(u64 a, u64 b) { return a + b; }
};

} // namespace coaccel_prim
