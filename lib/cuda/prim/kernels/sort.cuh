// The kernels of sorts: by the bytes of the keys, from the lowest to the highest one, each time in a stable way. For
// each byte there are three launches: the first one counts the values of the byte in each slice, the second one adds
// the counts of the slices before, the third one moves the elements. Rows of one slice do not need the second one.
// Short rows need one launch: the place of an element is the number of elements before it. A block has 256 threads, one
// for each value of a byte.

namespace coaccel_prim {

struct sort_shape {
    u64 n;
    u64 outer;
    u64 flip;
};

/// Keys and, if `Pairs`, their values.
template <class T>
struct sort_items {
    T* keys;
    u64* values;
};

/// Keys of up to 4 bytes are compared in 32 bits.
template <bool Wide>
struct sort_number {
    typedef u32 type;
};
template <>
struct sort_number<true> {
    typedef u64 type;
};

template <class T>
COACCEL_PRIM_FUNCTION typename sort_number<(sizeof(T) > 4)>::type sort_number_of(T x, u64 flip)
{
    return static_cast<typename sort_number<(sizeof(T) > 4)>::type>(sort_key(x, flip));
}

template <class T>
COACCEL_PRIM_FUNCTION u32 digit_of(T x, const sort_shape& l, int shift)
{
    return static_cast<u32>(sort_number_of(x, l.flip) >> shift) & 255;
}

template <bool Pairs, class T>
COACCEL_PRIM_FUNCTION void sort_short_rows(const sort_shape& l, const sort_items<T>& from, const sort_items<T>& to)
{
    for (u64 row = blockIdx.x; row < l.outer; row += gridDim.x)
        for (u64 i = threadIdx.x; i < l.n; i += blockDim.x) {
            const T* keys = from.keys + row * l.n;
            const auto own = sort_number_of(keys[i], l.flip);
            u64 before = 0;
            for (u64 k = 0; k < l.n; ++k) {
                const auto other = sort_number_of(keys[k], l.flip);
                before += other < own || (other == own && k < i) ? 1 : 0;
            }
            to.keys[row * l.n + before] = keys[i];
            if (Pairs)
                to.values[row * l.n + before] = from.values[row * l.n + i];
        }
}

/// The sum of the values up to this thread of the warp.
COACCEL_PRIM_FUNCTION u64 sum_in_warp(u64 own)
{
    const u32 lane = threadIdx.x % 32;
    u64 sum = own;
    COACCEL_PRIM_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u64 other = value_of(sum, lane < distance ? lane : lane - distance);
        if (lane >= distance)
            sum += other;
    }
    return sum;
}

/// The sum of the values of the threads before this one. The next call needs a barrier before it.
COACCEL_PRIM_FUNCTION u64 sum_before(u64 own)
{
    __shared__ u64 warps[8];
    const u32 warp = threadIdx.x / 32;
    const u64 sum = sum_in_warp(own);
    if (threadIdx.x % 32 == 31)
        warps[warp] = sum;
    __syncthreads();
    u64 before = sum - own;
    for (u32 w = 0; w < warp; ++w)
        before += warps[w];
    return before;
}

/// `counts` has a place for each row, value of the byte, and slice, in this order. Then follow, if there are several
/// slices, the sums of all slices for each row and value.
template <class T>
COACCEL_PRIM_FUNCTION void count_digits(const sort_shape& l, const order_slices& s, const T* keys, int shift,
                                        u64* counts)
{
    __shared__ u32 own[256];
    constexpr u64 size = pack<T>::size;
    for (u64 item = blockIdx.x; item < l.outer * s.count; item += gridDim.x) {
        const u64 row = item / s.count;
        const u64 slice = item % s.count;
        const u64 begin = slice * s.length;
        const u64 length = l.n - begin < s.length ? l.n - begin : s.length;
        const T* const from = keys + row * l.n + begin;
        own[threadIdx.x] = 0;
        __syncthreads();
        // Up to the first aligned element, then packs, then the rest.
        const u64 unaligned = (16 - reinterpret_cast<u64>(from) % 16) % 16 / sizeof(T);
        const u64 head = unaligned < length ? unaligned : length;
        const u64 packs = (length - head) / size;
        for (u64 i = threadIdx.x; i < head; i += blockDim.x)
            atomicAdd(&own[digit_of(from[i], l, shift)], 1u);
        for (u64 i = threadIdx.x; i < packs; i += blockDim.x) {
            const pack<T> loaded = reinterpret_cast<const pack<T>*>(from + head)[i];
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < size; ++k)
                atomicAdd(&own[digit_of(loaded.of[k], l, shift)], 1u);
        }
        for (u64 i = head + packs * size + threadIdx.x; i < length; i += blockDim.x)
            atomicAdd(&own[digit_of(from[i], l, shift)], 1u);
        __syncthreads();
        counts[(row * 256 + threadIdx.x) * s.count + slice] = own[threadIdx.x];
    }
}

/// Turns the counts of the slices into the sums of those before them. A warp for each row and value of the byte.
COACCEL_PRIM_FUNCTION void scan_counts(const sort_shape& l, const order_slices& s, u64* counts)
{
    // Loads that a thread waits for together.
    constexpr u64 loads = 4;
    const u64 rows = l.outer * 256;
    const u32 lane = threadIdx.x % 32;
    for (u64 row = u64(blockIdx.x) * 8 + threadIdx.x / 32; row < rows; row += u64(gridDim.x) * 8) {
        u64* const of_slices = counts + row * s.count;
        u64 before = 0;
        for (u64 at = lane; at < s.count + lane; at += 32 * loads) {
            u64 own[loads];
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < loads; ++k)
                own[k] = at + 32 * k < s.count ? of_slices[at + 32 * k] : 0;
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < loads; ++k) {
                const u64 sum = sum_in_warp(own[k]);
                if (at + 32 * k < s.count)
                    of_slices[at + 32 * k] = before + sum - own[k];
                before += value_of(sum, 31);
            }
        }
        if (lane == 0)
            counts[rows * s.count + row] = before;
    }
}

/// The place in the row of the first element of a slice whose byte has the value threadIdx.x.
COACCEL_PRIM_FUNCTION u64 first_place(const sort_shape& l, const order_slices& s, const u64* counts, u64 row, u64 slice)
{
    const u64 at = row * 256 + threadIdx.x;
    if (s.count == 1)
        return sum_before(counts[at]);
    return sum_before(counts[l.outer * 256 * s.count + at]) + counts[at * s.count + slice];
}

/// As in cuda/prim/order.cpp: the elements of each thread in a tile, so that a tile fits into 48 KiB.
template <bool Pairs, class T>
constexpr u32 sorted_by_thread = Pairs || sizeof(T) == 8 ? 8 : 16;

template <bool Pairs, class T>
struct sort_tile {
    static constexpr u32 length = 256 * sorted_by_thread<Pairs, T>;
    T keys[length];
    u64 values[Pairs ? length : 1];
    /// The counts of the values of the byte in the elements of each warp, then the places of the next ones in the tile.
    u32 counts[8][256];
    /// What makes a place in the row of a place in the tile.
    u64 distance[256];
};

/// Moves `length` elements of a slice, a tile at a time: each warp ranks its elements, which are adjacent, by their
/// order; the elements are sorted in shared memory; then adjacent threads write adjacent elements. `next` is the place
/// in the row of the next element whose byte has the value threadIdx.x.
template <bool Pairs, class T>
COACCEL_PRIM_FUNCTION void move_slice(u64 length, const sort_items<T>& from, const sort_items<T>& to,
                                      const sort_shape& l, int shift, u64 next)
{
    typedef sort_tile<Pairs, T> tile;
    constexpr u32 count = sorted_by_thread<Pairs, T>;
    __shared__ tile own;
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    const u32 first = warp * 32 * count + lane;
    for (u64 at = 0; at < length; at += tile::length) {
        const u32 inside = length - at < tile::length ? static_cast<u32>(length - at) : tile::length;
        T keys[count];
        u32 places[count];
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < count; ++k)
            if (first + 32 * k < inside)
                keys[k] = from.keys[at + first + 32 * k];
        for (u32 d = lane; d < 256; d += 32)
            own.counts[warp][d] = 0;
        wait_for_warp();
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < count; ++k) {
            // Those outside come last in the order of the tile.
            const u32 digit = first + 32 * k < inside ? digit_of(keys[k], l, shift) : 255;
            const u32 peers = threads_with_same_byte(digit);
            const u32 before = bits_in(peers & ((1u << lane) - 1));
            const u32 earlier = own.counts[warp][digit];
            places[k] = earlier + before;
            wait_for_warp();
            if (before == 0)
                own.counts[warp][digit] = earlier + bits_in(peers);
            wait_for_warp();
        }
        // Loaded while the block waits and adds.
        u64 values[Pairs ? count : 1];
        if (Pairs) {
            COACCEL_PRIM_UNROLL
            for (u32 k = 0; k < count; ++k)
                if (first + 32 * k < inside)
                    values[k] = from.values[at + first + 32 * k];
        }
        __syncthreads();
        u32 sum = 0;
        COACCEL_PRIM_UNROLL
        for (u32 w = 0; w < 8; ++w) {
            const u32 of_warp = own.counts[w][threadIdx.x];
            own.counts[w][threadIdx.x] = sum;
            sum += of_warp;
        }
        const u32 begin = static_cast<u32>(sum_before(sum));
        COACCEL_PRIM_UNROLL
        for (u32 w = 0; w < 8; ++w)
            own.counts[w][threadIdx.x] += begin;
        own.distance[threadIdx.x] = next - begin;
        next += sum;
        __syncthreads();
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < count; ++k)
            if (first + 32 * k < inside) {
                const u32 place = places[k] + own.counts[warp][digit_of(keys[k], l, shift)];
                own.keys[place] = keys[k];
                if (Pairs)
                    own.values[place] = values[k];
            }
        __syncthreads();
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < count; ++k) {
            const u32 i = threadIdx.x + 256 * k;
            if (i < inside) {
                const T key = own.keys[i];
                const u64 place = own.distance[digit_of(key, l, shift)] + i;
                to.keys[place] = key;
                if (Pairs)
                    to.values[place] = own.values[i];
            }
        }
        // The next tile writes there.
        __syncthreads();
    }
}

template <bool Pairs, class T>
COACCEL_PRIM_FUNCTION void sort_step(u64 launch, const sort_shape& l, const order_slices& s, int shift,
                                     const sort_items<T>& from, const sort_items<T>& to, u64* counts)
{
    if (launch == 0) {
        count_digits(l, s, from.keys, shift, counts);
    } else if (launch == 1) {
        scan_counts(l, s, counts);
    } else if (launch == 2) {
        for (u64 item = blockIdx.x; item < l.outer * s.count; item += gridDim.x) {
            const u64 row = item / s.count;
            const u64 slice = item % s.count;
            const u64 begin = slice * s.length;
            const u64 length = l.n - begin < s.length ? l.n - begin : s.length;
            const u64 at = row * l.n;
            const sort_items<T> source = {from.keys + at + begin, Pairs ? from.values + at + begin : nullptr};
            const sort_items<T> target = {to.keys + at, Pairs ? to.values + at : nullptr};
            move_slice<Pairs>(length, source, target, l, shift, first_place(l, s, counts, row, slice));
        }
    } else {
        sort_short_rows<Pairs>(l, from, to);
    }
}

/// `launch` 0 to 2: a byte of long rows; 3: short rows.
template <class T>
COACCEL_PRIM_KERNEL_OF(4)
sort(u64 launch, sort_shape l, order_slices s, u64 shift, T* from, T* to, u64* counts)
{
    const sort_items<T> source = {from, nullptr};
    const sort_items<T> target = {to, nullptr};
    sort_step<false>(launch, l, s, int(shift), source, target, counts);
}

template <class T>
COACCEL_PRIM_KERNEL_OF(4)
sort_pairs(u64 launch, sort_shape l, order_slices s, u64 shift, T* from, u64* from_values, T* to, u64* to_values,
           u64* counts)
{
    const sort_items<T> source = {from, from_values};
    const sort_items<T> target = {to, to_values};
    sort_step<true>(launch, l, s, int(shift), source, target, counts);
}

} // namespace coaccel_prim
