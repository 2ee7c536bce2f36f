#ifndef COACCEL_HOST_OPS_PRIM_FOLDS_HPP
#define COACCEL_HOST_OPS_PRIM_FOLDS_HPP

#include "host/ops/prim_loops.hpp"
#include "prim/reductions.hpp"

#include <coaccel/ops/prim/reduce.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

// How rows of elements are combined. Shared by reductions and scans.
namespace coaccel::host {

template <class Use>
void with_reduction(prim::reduction r, const Use& use)
{
    using prim::reduction;
    switch (r) {
    case reduction::sum: return use(coaccel_prim::reduce_sum{});
    case reduction::product: return use(coaccel_prim::reduce_product{});
    case reduction::min: return use(coaccel_prim::reduce_min{});
    case reduction::max: return use(coaccel_prim::reduce_max{});
    }
}

/// Combines elements of type T by a function of reductions.cuh.
template <class Function, prim::number T>
struct value_fold {
    using state = std::conditional_t<Function::wide && prim::floating<T>, double, computed<T>>;
    using result = T;

    static state start(const T& x, std::uint64_t) { return static_cast<state>(computed<T>(x)); }
    static state join(const state& a, const state& b) { return Function::of(a, b); }
    static T end(const state& s) { return T(s); }
};

/// Finds an element by a class of reductions.cuh.
template <class Which, prim::number T>
struct index_fold {
    using state = coaccel_prim::indexed<computed<T>>;
    using result = std::uint64_t;

    static state start(const T& x, std::uint64_t i) { return {computed<T>(x), i}; }
    static state join(const state& a, const state& b) { return coaccel_prim::first_of<Which>(a, b); }
    static std::uint64_t end(const state& s) { return s.index; }
};

/// Elements first to first + n of a row. Preconditions: n > 0.
template <class Fold, class T>
typename Fold::state fold_row(const T* x, std::uint64_t first, std::uint64_t n, std::uint64_t stride)
{
    using state = typename Fold::state;
    // Several sums at a time, because an addition waits for the one before it. Of integers the compiler makes several
    // itself, and g++ 12 with -O3 makes wrong ones of these.
    constexpr std::uint64_t ways = std::is_integral_v<state> ? 1 : 8;
    if (n < 2 * ways) {
        state all = Fold::start(x[0], first);
        for (std::uint64_t i = 1; i < n; ++i)
            all = Fold::join(all, Fold::start(x[i * stride], first + i));
        return all;
    }
    std::array<state, ways> parts;
    for (std::uint64_t k = 0; k < ways; ++k)
        parts[k] = Fold::start(x[k * stride], first + k);
    std::uint64_t i = ways;
    for (; i + ways <= n; i += ways)
        for (std::uint64_t k = 0; k < ways; ++k)
            parts[k] = Fold::join(parts[k], Fold::start(x[(i + k) * stride], first + i + k));
    for (std::uint64_t k = 0; i + k < n; ++k)
        parts[k] = Fold::join(parts[k], Fold::start(x[(i + k) * stride], first + i + k));
    for (std::uint64_t k = 1; k < ways; ++k)
        parts[0] = Fold::join(parts[0], parts[k]);
    return parts[0];
}

} // namespace coaccel::host

#endif
