#include "host/ops/prim_groups.hpp"
#include "host/ops/prim_loops.hpp"
#include "prim/functions.hpp"

#include <coaccel/ops/prim/elementwise.hpp>

namespace coaccel::host {
namespace {

// Calls `use` with the function of the enumerator.
#define COACCEL_CASE(enumeration, prefix, name)                                                                        \
    case prim::enumeration::name: return use(coaccel_prim::prefix##name{});

template <class Use>
void with_function(prim::real_function f, const Use& use)
{
    switch (f) {
#define COACCEL_FUNCTION(name) COACCEL_CASE(real_function, real_, name)
        COACCEL_FUNCTION(neg)
        COACCEL_FUNCTION(abs)
        COACCEL_FUNCTION(sqrt)
        COACCEL_FUNCTION(rsqrt)
        COACCEL_FUNCTION(exp)
        COACCEL_FUNCTION(log)
        COACCEL_FUNCTION(log1p)
        COACCEL_FUNCTION(expm1)
        COACCEL_FUNCTION(sin)
        COACCEL_FUNCTION(cos)
        COACCEL_FUNCTION(tan)
        COACCEL_FUNCTION(tanh)
        COACCEL_FUNCTION(sigmoid)
        COACCEL_FUNCTION(erf)
        COACCEL_FUNCTION(relu)
        COACCEL_FUNCTION(gelu)
        COACCEL_FUNCTION(silu)
        COACCEL_FUNCTION(floor)
        COACCEL_FUNCTION(ceil)
        COACCEL_FUNCTION(round)
        COACCEL_FUNCTION(sign)
        COACCEL_FUNCTION(square)
        COACCEL_FUNCTION(reciprocal)
#undef COACCEL_FUNCTION
    }
}

template <class Use>
void with_function(prim::integer_function f, const Use& use)
{
    switch (f) {
#define COACCEL_FUNCTION(name) COACCEL_CASE(integer_function, integer_, name)
        COACCEL_FUNCTION(neg)
        COACCEL_FUNCTION(abs)
        COACCEL_FUNCTION(relu)
        COACCEL_FUNCTION(sign)
        COACCEL_FUNCTION(square)
        COACCEL_FUNCTION(bit_not)
        COACCEL_FUNCTION(logical_not)
#undef COACCEL_FUNCTION
    }
}

template <class Use>
void with_function(prim::real_binary f, const Use& use)
{
    switch (f) {
#define COACCEL_FUNCTION(name) COACCEL_CASE(real_binary, real2_, name)
        COACCEL_FUNCTION(add)
        COACCEL_FUNCTION(sub)
        COACCEL_FUNCTION(mul)
        COACCEL_FUNCTION(div)
        COACCEL_FUNCTION(min)
        COACCEL_FUNCTION(max)
        COACCEL_FUNCTION(pow)
        COACCEL_FUNCTION(mod)
        COACCEL_FUNCTION(atan2)
        COACCEL_FUNCTION(hypot)
#undef COACCEL_FUNCTION
    }
}

template <class Use>
void with_function(prim::integer_binary f, const Use& use)
{
    switch (f) {
#define COACCEL_FUNCTION(name) COACCEL_CASE(integer_binary, integer2_, name)
        COACCEL_FUNCTION(add)
        COACCEL_FUNCTION(sub)
        COACCEL_FUNCTION(mul)
        COACCEL_FUNCTION(div)
        COACCEL_FUNCTION(min)
        COACCEL_FUNCTION(max)
        COACCEL_FUNCTION(pow)
        COACCEL_FUNCTION(mod)
        COACCEL_FUNCTION(bit_and)
        COACCEL_FUNCTION(bit_or)
        COACCEL_FUNCTION(bit_xor)
        COACCEL_FUNCTION(logical_and)
        COACCEL_FUNCTION(logical_or)
        COACCEL_FUNCTION(logical_xor)
#undef COACCEL_FUNCTION
    }
}

template <class Use>
void with_function(prim::comparison f, const Use& use)
{
    switch (f) {
#define COACCEL_FUNCTION(name) COACCEL_CASE(comparison, compare_, name)
        COACCEL_FUNCTION(equal)
        COACCEL_FUNCTION(not_equal)
        COACCEL_FUNCTION(less)
        COACCEL_FUNCTION(less_equal)
        COACCEL_FUNCTION(greater)
        COACCEL_FUNCTION(greater_equal)
#undef COACCEL_FUNCTION
    }
}

template <class Use>
void with_function(prim::ternary_function f, const Use& use)
{
    switch (f) {
#define COACCEL_FUNCTION(name) COACCEL_CASE(ternary_function, ternary_, name)
        COACCEL_FUNCTION(multiply_add)
        COACCEL_FUNCTION(clamp)
#undef COACCEL_FUNCTION
    }
}

#undef COACCEL_CASE

struct elementwise {
    template <class T>
    static void run(const prim::unary<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* x = o.data(op.x);
        T* y = o.data(op.y);
        with_function(op.what, [&]<class F>(F) {
            for_each_element(loops_of(op.shape, op.y.size()),
                             [=](std::uint64_t i, std::uint64_t j) { y[j] = T(F::of(C(x[i]))); });
        });
    }

    template <class T>
    static void run(const prim::binary<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* a = o.data(op.a);
        const T* b = o.data(op.b);
        T* c = o.data(op.c);
        with_function(op.what, [&]<class F>(F) {
            for_each_element(loops_of(op.shape, op.c.size()), [=](std::uint64_t i, std::uint64_t j, std::uint64_t k) {
                c[k] = T(F::of(C(a[i]), C(b[j])));
            });
        });
    }

    template <class T>
    static void run(const prim::compare<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* a = o.data(op.a);
        const T* b = o.data(op.b);
        std::uint8_t* c = o.data(op.c);
        with_function(op.what, [&]<class F>(F) {
            for_each_element(loops_of(op.shape, op.c.size()), [=](std::uint64_t i, std::uint64_t j, std::uint64_t k) {
                c[k] = F::of(C(a[i]), C(b[j])) ? 1 : 0;
            });
        });
    }

    template <class T>
    static void run(const prim::ternary<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* a = o.data(op.a);
        const T* b = o.data(op.b);
        const T* c = o.data(op.c);
        T* d = o.data(op.d);
        with_function(op.what, [&]<class F>(F) {
            for_each_element(loops_of(op.shape, op.d.size()),
                             [=](std::uint64_t i, std::uint64_t j, std::uint64_t k, std::uint64_t m) {
                                 d[m] = T(F::of(C(a[i]), C(b[j]), C(c[k])));
                             });
        });
    }

    template <class T>
    static void run(const prim::where<T>& op, const bound_op& o)
    {
        const std::uint8_t* mask = o.data(op.mask);
        const T* a = o.data(op.a);
        const T* b = o.data(op.b);
        T* c = o.data(op.c);
        for_each_element(loops_of(op.shape, op.c.size()), [=](std::uint64_t m, std::uint64_t i, std::uint64_t j,
                                                              std::uint64_t k) { c[k] = mask[m] ? a[i] : b[j]; });
    }

    template <class T>
    static void run(const prim::clamp<T>& op, const bound_op& o)
    {
        using C = computed<T>;
        const T* x = o.data(op.x);
        T* y = o.data(op.y);
        const C low = C(op.low);
        const C high = C(op.high);
        for_each_element(loops_of(op.shape, op.y.size()), [=](std::uint64_t i, std::uint64_t j) {
            y[j] = T(coaccel_prim::ternary_clamp::of(C(x[i]), low, high));
        });
    }

    template <class T>
    static void run(const prim::sequence<T>& op, const bound_op& o)
    {
        T* dst = o.data(op.dst);
        for (std::uint64_t i = 0; i < op.dst.size(); ++i)
            if constexpr (prim::floating<T>)
                dst[i] =
                    T(coaccel_prim::sequence_element(double(computed<T>(op.start)), double(computed<T>(op.step)), i));
            else
                dst[i] = coaccel_prim::wrapped<T>(static_cast<std::uint64_t>(op.start) +
                                                  i * static_cast<std::uint64_t>(op.step));
    }
};

template <class... Ts>
void add_elementwise(op_table& table, type_list<Ts...>)
{
    (add_ops<elementwise>(table, prim::elementwise_for<Ts>{}), ...);
}

} // namespace

void add_prim_elementwise(op_table& table)
{
    add_elementwise(table, prim::floating_types{});
    add_elementwise(table, prim::integer_types{});
}

} // namespace coaccel::host
