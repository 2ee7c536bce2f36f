// The kernels that keep some elements, in their order. The elements are divided into slices: the first launch counts
// those to keep in each slice, the second one adds these counts up, the third one moves the elements, and the last one
// clears the rest of the result. A single slice needs only the last two.

namespace coaccel_prim {

/// How many elements are kept, and the place behind the last one of them; zero if there is none.
struct kept {
    u64 count;
    u64 end;
};

COACCEL_PRIM_FUNCTION kept value_of(kept value, u32 thread)
{
    const kept other = {value_of(value.count, thread), value_of(value.end, thread)};
    return other;
}

struct joining_kept {
    typedef kept state;
    COACCEL_PRIM_FUNCTION kept join(const kept& a, const kept& b)
    {
        kept made;
        made.count = a.count + b.count;
        made.end = a.end < b.end ? b.end : a.end;
        return made;
    }
};

// Which elements are kept.

struct keep_masked {
    const u8* mask;

    __device__ bool of(u64 i) const { return mask[i] != 0; }
};

/// The first one of each run of equal elements.
template <class T>
struct keep_first {
    const T* x;

    __device__ bool of(u64 i) const { return i == 0 || sort_key(x[i], 0) != sort_key(x[i - 1], 0); }
};

template <class T>
COACCEL_PRIM_FUNCTION void clear_range(T* y, u64 begin, u64 end)
{
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = begin + u64(blockIdx.x) * blockDim.x + threadIdx.x; i < end; i += step)
        y[i] = T();
}

// Where they go. `put` gets the place among the kept elements, the index, and `end` of the kept elements before it;
// `finish` gets the sum of all slices.

template <class T>
struct kept_elements {
    const T* x;
    T* y;
    u64 room;

    __device__ void put(u64 place, u64 i, u64) const
    {
        if (place < room)
            y[place] = x[i];
    }
    __device__ void finish(const kept&) const {}
    __device__ void clear_from(u64 count) const { clear_range(y, count, room); }
};

/// A run ends where the next one begins.
template <class T>
struct kept_runs {
    const T* x;
    u64 n;
    T* values;
    u64* lengths;
    u64 room;

    __device__ void put(u64 place, u64 i, u64 end) const
    {
        if (place < room)
            values[place] = x[i];
        if (place > 0 && place - 1 < room)
            lengths[place - 1] = i - (end - 1);
    }
    __device__ void finish(const kept& all) const
    {
        if (all.count - 1 < room)
            lengths[all.count - 1] = n - (all.end - 1);
    }
    __device__ void clear_from(u64 count) const
    {
        clear_range(values, count, room);
        clear_range(lengths, count, room);
    }
};

template <class Keep>
COACCEL_PRIM_FUNCTION kept count_kept(const Keep& keep, u64 begin, u64 end)
{
    kept own = {0, 0};
    for (u64 i = begin + threadIdx.x; i < end; i += blockDim.x)
        if (keep.of(i)) {
            ++own.count;
            own.end = i + 1;
        }
    return joined<joining_kept>(own, blockDim.x);
}

/// Moves the elements to keep from begin to end, behind those of `before`. Returns both together. Each warp examines
/// rows of 32 adjacent elements, of which one word has the kept ones.
template <class Keep, class To>
COACCEL_PRIM_FUNCTION kept move_kept(const Keep& keep, const To& to, u64 begin, u64 end, kept before)
{
    constexpr u64 rows = 8;
    __shared__ kept parts[8];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const unsigned warps = blockDim.x / 32;
    const u32 lower_lanes = (1u << lane) - 1;
    for (u64 at = begin; at < end; at += u64(blockDim.x) * rows) {
        const u64 first = at + u64(warp) * 32 * rows;
        u32 words[rows];
        kept own = {0, 0};
        for (u64 r = 0; r < rows; ++r) {
            const u64 i = first + r * 32 + lane;
            words[r] = threads_where(i < end && keep.of(i));
            own.count += bits_in(words[r]);
            if (words[r] != 0)
                own.end = first + r * 32 + bit_length(words[r]);
        }
        if (lane == 0)
            parts[warp] = own;
        __syncthreads();
        kept mine = before;
        for (unsigned w = 0; w < warps; ++w) {
            if (w == warp)
                mine = before;
            before = joining_kept::join(before, parts[w]);
        }
        for (u64 r = 0; r < rows; ++r) {
            const u32 lower = words[r] & lower_lanes;
            if (words[r] >> lane & 1)
                to.put(mine.count + bits_in(lower), first + r * 32 + lane,
                       lower == 0 ? mine.end : first + r * 32 + bit_length(lower));
            mine.count += bits_in(words[r]);
            if (words[r] != 0)
                mine.end = first + r * 32 + bit_length(words[r]);
        }
        // The next round writes there.
        __syncthreads();
    }
    return before;
}

/// `parts`: what each slice keeps, then what the slices before it keep.
template <class Keep, class To>
COACCEL_PRIM_FUNCTION void compact_step(u64 launch, u64 n, const order_slices& s, const Keep& keep, const To& to,
                                        u64* count, kept* parts)
{
    const kept none = {0, 0};
    if (launch == 1) {
        if (blockIdx.x == 0)
            scan_parts<joining_kept>(parts, s.count, none);
        return;
    }
    if (launch == 3) {
        to.clear_from(*count);
        return;
    }
    for (u64 slice = blockIdx.x; slice < s.count; slice += gridDim.x) {
        const u64 begin = slice * s.length;
        const u64 end = n - begin < s.length ? n : begin + s.length;
        if (launch == 0) {
            const kept own = count_kept(keep, begin, end);
            if (threadIdx.x == 0)
                parts[slice] = own;
        } else {
            const kept all = move_kept(keep, to, begin, end, s.count == 1 ? none : parts[slice]);
            if (slice == s.count - 1 && threadIdx.x == 0) {
                *count = all.count;
                to.finish(all);
            }
        }
    }
}

/// `room`: how many elements y has.
template <class T>
COACCEL_PRIM_KERNEL select(u64 launch, u64 n, u64 room, order_slices s, const T* x, const u8* mask, T* y, u64* count,
                           kept* parts)
{
    const keep_masked keep = {mask};
    const kept_elements<T> to = {x, y, room};
    compact_step(launch, n, s, keep, to, count, parts);
}

template <class T>
COACCEL_PRIM_KERNEL unique(u64 launch, u64 n, u64 room, order_slices s, const T* x, T* y, u64* count, kept* parts)
{
    const keep_first<T> keep = {x};
    const kept_elements<T> to = {x, y, room};
    compact_step(launch, n, s, keep, to, count, parts);
}

template <class T>
COACCEL_PRIM_KERNEL run_length(u64 launch, u64 n, u64 room, order_slices s, const T* x, T* values, u64* lengths,
                               u64* count, kept* parts)
{
    const keep_first<T> keep = {x};
    const kept_runs<T> to = {x, n, values, lengths, room};
    compact_step(launch, n, s, keep, to, count, parts);
}

} // namespace coaccel_prim
