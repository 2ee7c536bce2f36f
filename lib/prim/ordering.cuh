// The order of elements, as unsigned numbers that have it. Shared as functions.cuh, which comes before it.

namespace coaccel_prim {

/// For the bits of a real number: NaN is the greatest number, and both zeros are equal. `sign` is the bit of the sign,
/// `infinity` the bits of infinity.
COACCEL_PRIM_FUNCTION u64 real_key(u64 bits, u64 sign, u64 infinity)
{
    const u64 all = sign + (sign - 1);
    const u64 magnitude = bits & (sign - 1);
    if (magnitude > infinity)
        return all;
    if (magnitude == 0)
        return sign;
    return bits & sign ? bits ^ all : bits | sign;
}

template <class C>
COACCEL_PRIM_FUNCTION u64 integer_key(C x)
{
    const u64 bits = static_cast<typename unsigned_of<C>::type>(x);
    return static_cast<C>(-1) < C(0) ? bits ^ (u64(1) << (8 * sizeof(C) - 1)) : bits;
}

} // namespace coaccel_prim
