// The kernels of reductions. A row of elements is divided into slices, each of which a block reduces to one part; a
// second launch of the same kernel reduces the parts of each row. How rows are divided depends on their length only,
// and parts are combined in a fixed order, so that sums are always the same.

namespace coaccel_prim {

/// As reduction_shape and row_slices in prim/reduction_shape.hpp.
struct reduction_loops {
    loops<2> results;
    loops<1> elements;
};

struct slices {
    u64 by_thread;
    u64 count;
    u64 length;
};

template <bool Wide, class T>
struct state_of {
    typedef typename computed<T>::sum type;
};
template <class T>
struct state_of<false, T> {
    typedef typename computed<T>::type type;
};

// A fold has a `state`, made of an element and its index, two of which can be joined, and a `result`.
template <class Function, class T>
struct value_fold {
    typedef typename state_of<Function::wide, T>::type state;
    typedef T result;
    COACCEL_PRIM_FUNCTION state start(T x, u64) { return static_cast<state>(computed<T>::load(x)); }
    COACCEL_PRIM_FUNCTION state join(const state& a, const state& b) { return Function::of(a, b); }
    COACCEL_PRIM_FUNCTION T end(const state& s)
    {
        return computed<T>::store(static_cast<typename computed<T>::type>(s));
    }
};

template <class Which, class T>
struct index_fold {
    typedef indexed<typename computed<T>::type> state;
    typedef u64 result;
    COACCEL_PRIM_FUNCTION state start(T x, u64 i)
    {
        state made;
        made.value = computed<T>::load(x);
        made.index = i;
        return made;
    }
    COACCEL_PRIM_FUNCTION state join(const state& a, const state& b) { return first_of<Which>(a, b); }
    COACCEL_PRIM_FUNCTION u64 end(const state& s) { return s.index; }
};

/// Joins the states of the first `count` threads of the block, at least one; thread 0 gets the result.
template <class Fold>
COACCEL_PRIM_FUNCTION typename Fold::state joined(const typename Fold::state& own, u64 count)
{
    __shared__ typename Fold::state parts[256];
    parts[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half && threadIdx.x + half < count)
            parts[threadIdx.x] = Fold::join(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    const typename Fold::state all = parts[0];
    // The next call writes there.
    __syncthreads();
    return all;
}

/// Elements that are read one by one, at places that `at` computes.
template <class Fold, class T, class At>
COACCEL_PRIM_FUNCTION typename Fold::state block_fold(const T* x, const At& at, u64 begin, u64 end)
{
    // A thread without elements is not joined.
    typename Fold::state own = typename Fold::state();
    const u64 first = begin + threadIdx.x;
    if (first < end)
        own = Fold::start(x[at.of(first)], first);
    for (u64 i = first + blockDim.x; i < end; i += blockDim.x)
        own = Fold::join(own, Fold::start(x[at.of(i)], i));
    return joined<Fold>(own, end - begin);
}

/// Adjacent elements, a pack at a time: several for each thread, which are all loaded before the first one is joined,
/// then the rest one by one. Each thread joins its elements in the same order, wherever x is.
template <class Fold, class T>
COACCEL_PRIM_FUNCTION typename Fold::state block_fold_adjacent(const T* x, u64 begin, u64 end)
{
    constexpr u64 size = pack<T>::size;
    constexpr u64 packs = 4;
    const u64 distance = u64(blockDim.x) * size;
    const u64 length = end - begin;
    const bool aligned = reinterpret_cast<u64>(x + begin) % 16 == 0;
    typename Fold::state own = typename Fold::state();
    bool any = false;
    u64 i = u64(threadIdx.x) * size;
    for (u64 tile = packs * distance; aligned && tile <= length; tile += packs * distance) {
        pack<T> loaded[packs];
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < packs; ++p)
            loaded[p] = *reinterpret_cast<const pack<T>*>(x + begin + i + p * distance);
        COACCEL_PRIM_UNROLL
        for (u64 p = 0; p < packs; ++p) {
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < size; ++k) {
                const typename Fold::state next = Fold::start(loaded[p].of[k], begin + i + p * distance + k);
                own = any || p + k > 0 ? Fold::join(own, next) : next;
            }
        }
        any = true;
        i += packs * distance;
    }
    for (; i < length; i += distance) {
        const u64 at = begin + i;
        const u64 count = length - i < size ? length - i : size;
        pack<T> p;
        if (aligned && count == size)
            p = *reinterpret_cast<const pack<T>*>(x + at);
        else
            for (u64 k = 0; k < count; ++k)
                p.of[k] = x[at + k];
        for (u64 k = 0; k < count; ++k) {
            own = any ? Fold::join(own, Fold::start(p.of[k], at + k)) : Fold::start(p.of[k], at + k);
            any = true;
        }
    }
    return joined<Fold>(own, (length + size - 1) / size);
}

/// The place of element i of a row.
struct place_in_loops {
    const loops<1>& l;
    __device__ u64 of(u64 i) const
    {
        if (l.rank == 1)
            return i * l.strides[0][0];
        return l.count <= 0xffffffffull ? places_of(l, static_cast<u32>(i)).at[0] : places_of(l, i).at[0];
    }
};

struct place_of_result {
    const loops<2>& l;
    __device__ places<2> of(u64 i) const
    {
        return l.count <= 0xffffffffull ? places_of(l, static_cast<u32>(i)) : places_of(l, i);
    }
};

/// Joins the parts of a row in a second launch. A thread loads several parts before it joins the first one.
template <class Fold>
COACCEL_PRIM_FUNCTION typename Fold::state joined_parts(const typename Fold::state* parts, u64 count)
{
    typedef typename Fold::state state;
    constexpr u64 loads = 8;
    state own = state();
    for (u64 at = threadIdx.x; at < count; at += loads * blockDim.x) {
        state loaded[loads];
        COACCEL_PRIM_UNROLL
        for (u64 k = 0; k < loads; ++k)
            if (at + k * blockDim.x < count)
                loaded[k] = parts[at + k * blockDim.x];
        COACCEL_PRIM_UNROLL
        for (u64 k = 0; k < loads; ++k)
            if (at + k * blockDim.x < count)
                own = at + k == threadIdx.x ? loaded[k] : Fold::join(own, loaded[k]);
    }
    return joined<Fold>(own, count);
}

template <class Fold, class T>
COACCEL_PRIM_FUNCTION void reduce_rows(u64 second, const reduction_loops& l, const slices& s, const T* x,
                                       typename Fold::result* y, typename Fold::state* parts)
{
    typedef typename Fold::state state;
    const u64 rows = l.results.count;
    const place_of_result results{l.results};
    const place_in_loops elements{l.elements};
    if (s.by_thread) {
        const u64 step = u64(gridDim.x) * blockDim.x;
        for (u64 row = u64(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += step) {
            const places<2> p = results.of(row);
            state own = Fold::start(x[p.at[0] + elements.of(0)], 0);
            for (u64 i = 1; i < l.elements.count; ++i)
                own = Fold::join(own, Fold::start(x[p.at[0] + elements.of(i)], i));
            y[p.at[1]] = Fold::end(own);
        }
        return;
    }
    if (second) {
        for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
            const state all = joined_parts<Fold>(parts + row * s.count, s.count);
            if (threadIdx.x == 0)
                y[results.of(row).at[1]] = Fold::end(all);
        }
        return;
    }
    const bool adjacent = l.elements.rank == 1 && l.elements.strides[0][0] == 1;
    for (u64 item = blockIdx.x; item < rows * s.count; item += gridDim.x) {
        const u64 row = item / s.count;
        const u64 begin = item % s.count * s.length;
        const u64 rest = l.elements.count - begin;
        const u64 end = begin + (rest < s.length ? rest : s.length);
        const places<2> p = results.of(row);
        const T* from = x + p.at[0];
        const state all =
            adjacent ? block_fold_adjacent<Fold>(from, begin, end) : block_fold<Fold>(from, elements, begin, end);
        if (threadIdx.x != 0)
            continue;
        if (s.count == 1)
            y[p.at[1]] = Fold::end(all);
        else
            parts[item] = all;
    }
}

template <class Function, class T>
COACCEL_PRIM_KERNEL reduce(u64 second, reduction_loops l, slices s, const T* x, T* y,
                           typename value_fold<Function, T>::state* parts)
{
    reduce_rows<value_fold<Function, T>>(second, l, s, x, y, parts);
}

template <class Which, class T>
COACCEL_PRIM_KERNEL arg_reduce(u64 second, reduction_loops l, slices s, const T* x, u64* y,
                               typename index_fold<Which, T>::state* parts)
{
    reduce_rows<index_fold<Which, T>>(second, l, s, x, y, parts);
}

/// The place of element (i, column) of a packed matrix, relative to the column.
struct place_in_column {
    u64 columns;
    __device__ u64 of(u64 i) const { return i * columns; }
};

/// A thread or a block for each segment and column. `neutral` is the result of an empty segment.
template <class Function, class T>
COACCEL_PRIM_KERNEL segmented_reduce(u64 by_thread, u64 rows, u64 segments, u64 columns, const T* x, const u64* offsets,
                                     T* y, T neutral)
{
    typedef value_fold<Function, T> fold;
    const place_in_column at{columns};
    const u64 first = by_thread ? u64(blockIdx.x) * blockDim.x + threadIdx.x : blockIdx.x;
    const u64 step = by_thread ? u64(gridDim.x) * blockDim.x : gridDim.x;
    for (u64 item = first; item < segments * columns; item += step) {
        const u64 segment = item / columns;
        const u64 begin = offsets[segment] < rows ? offsets[segment] : rows;
        const u64 end = offsets[segment + 1] < rows ? offsets[segment + 1] : rows;
        const T* from = x + item % columns;
        if (begin >= end) {
            // The same for all threads of a block.
            if (by_thread || threadIdx.x == 0)
                y[item] = neutral;
        } else if (by_thread) {
            typename fold::state own = fold::start(from[at.of(begin)], begin);
            for (u64 i = begin + 1; i < end; ++i)
                own = fold::join(own, fold::start(from[at.of(i)], i));
            y[item] = fold::end(own);
        } else {
            const typename fold::state all =
                columns == 1 ? block_fold_adjacent<fold>(from, begin, end) : block_fold<fold>(from, at, begin, end);
            if (threadIdx.x == 0)
                y[item] = fold::end(all);
        }
    }
}

} // namespace coaccel_prim
