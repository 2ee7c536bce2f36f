// The order of elements, as unsigned numbers that have it. Shared as functions.cuh, which comes before it.

namespace coaccel_prim {

/// For the bits of a real number, of which there are as many as in `all`: NaN is the greatest number, and both zeros are
/// equal. `infinity` are the bits of infinity.
template <class Word>
COACCEL_PRIM_FUNCTION Word real_key(Word bits, Word all, Word infinity)
{
    const Word sign = all - all / 2;
    const Word magnitude = bits & (sign - 1);
    const Word ordered = bits & sign ? bits ^ all : bits | sign;
    const Word number = magnitude == 0 ? sign : ordered;
    return magnitude > infinity ? all : number;
}

template <class C>
COACCEL_PRIM_FUNCTION u64 integer_key(C x)
{
    const u64 bits = static_cast<typename unsigned_of<C>::type>(x);
    return static_cast<C>(-1) < C(0) ? bits ^ (u64(1) << (8 * sizeof(C) - 1)) : bits;
}

} // namespace coaccel_prim
