// How the elements of reductions and scans are combined, on the type in which they are computed. Shared as
// functions.cuh, which comes before it.

namespace coaccel_prim {

COACCEL_PRIM_FUNCTION float added(float a, float b)
{
    return a + b;
}
COACCEL_PRIM_FUNCTION double added(double a, double b)
{
    return a + b;
}
template <class C>
COACCEL_PRIM_FUNCTION C added(C a, C b)
{
    return integer2_add::of(a, b);
}

COACCEL_PRIM_FUNCTION float multiplied(float a, float b)
{
    return a * b;
}
COACCEL_PRIM_FUNCTION double multiplied(double a, double b)
{
    return a * b;
}
template <class C>
COACCEL_PRIM_FUNCTION C multiplied(C a, C b)
{
    return integer2_mul::of(a, b);
}

// `wide`: computed in the type of sums, which may be wider than that of elements.
struct reduce_sum {
    static constexpr bool wide = true;
    template <class S>
    COACCEL_PRIM_FUNCTION S of(S a, S b)
    {
        return added(a, b);
    }
};

struct reduce_product {
    static constexpr bool wide = true;
    template <class S>
    COACCEL_PRIM_FUNCTION S of(S a, S b)
    {
        return multiplied(a, b);
    }
};

struct reduce_min {
    static constexpr bool wide = false;
    template <class S>
    COACCEL_PRIM_FUNCTION S of(S a, S b)
    {
        return lesser(a, b);
    }
};

struct reduce_max {
    static constexpr bool wide = false;
    template <class S>
    COACCEL_PRIM_FUNCTION S of(S a, S b)
    {
        return greater(a, b);
    }
};

// An element and its index. Which of two comes first: a NaN, then the lesser or greater element, then the lesser index.
template <class C>
struct indexed {
    C value;
    u64 index;
};

struct arg_min {
    template <class C>
    COACCEL_PRIM_FUNCTION bool before(C a, C b)
    {
        return a < b || (is_nan(a) && !is_nan(b));
    }
};

struct arg_max {
    template <class C>
    COACCEL_PRIM_FUNCTION bool before(C a, C b)
    {
        return a > b || (is_nan(a) && !is_nan(b));
    }
};

template <class Which, class C>
COACCEL_PRIM_FUNCTION indexed<C> first_of(const indexed<C>& a, const indexed<C>& b)
{
    if (Which::before(a.value, b.value))
        return a;
    if (Which::before(b.value, a.value))
        return b;
    return a.index < b.index ? a : b;
}

} // namespace coaccel_prim
