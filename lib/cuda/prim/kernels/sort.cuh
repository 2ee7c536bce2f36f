// The kernels of sorts: by the bytes of the keys, from the lowest to the highest one, each time in a stable way. For
// each byte there are three launches: the first one counts the values of the byte in each slice, the second one adds
// the counts of the slices before, the third one moves the elements. Rows of one slice do not need the second one. Short
// rows need one launch: the place of an element is the number of elements before it. A block has 256 threads, one for
// each value of a byte.

namespace coaccel_prim {

struct sort_shape {
    u64 n;
    u64 outer;
    u64 flip;
};

/// Keys and their values, which are absent in `sort`.
template <class T>
struct sort_items {
    T* keys;
    u64* values;
};

template <class T>
COACCEL_PRIM_FUNCTION void put_item(const sort_items<T>& to, u64 at, const sort_items<T>& from, u64 i)
{
    to.keys[at] = from.keys[i];
    if (to.values)
        to.values[at] = from.values[i];
}

template <class T>
COACCEL_PRIM_FUNCTION void sort_short_rows(const sort_shape& l, const sort_items<T>& from, const sort_items<T>& to)
{
    for (u64 row = blockIdx.x; row < l.outer; row += gridDim.x)
        for (u64 i = threadIdx.x; i < l.n; i += blockDim.x) {
            const T* keys = from.keys + row * l.n;
            const u64 own = sort_key(keys[i], l.flip);
            u64 before = 0;
            for (u64 k = 0; k < l.n; ++k) {
                const u64 other = sort_key(keys[k], l.flip);
                before += other < own || (other == own && k < i) ? 1 : 0;
            }
            put_item(to, row * l.n + before, from, row * l.n + i);
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
    for (u64 item = blockIdx.x; item < l.outer * s.count; item += gridDim.x) {
        const u64 row = item / s.count;
        const u64 slice = item % s.count;
        const u64 begin = slice * s.length;
        const u64 end = begin + s.length < l.n ? begin + s.length : l.n;
        u64* to = counts + row * 256 * s.count + slice;
        for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
            to[d * s.count] = 0;
        // A counter of 32 bits would overflow in a slice of more elements.
        constexpr u64 most = u64(1) << 31;
        for (u64 part = begin; part < end; part += most) {
            const u64 part_end = end - part < most ? end : part + most;
            for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
                own[d] = 0;
            __syncthreads();
            for (u64 i = part + threadIdx.x; i < part_end; i += blockDim.x)
                atomicAdd(&own[(sort_key(keys[row * l.n + i], l.flip) >> shift) & 255], 1u);
            __syncthreads();
            for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
                to[d * s.count] += own[d];
            // The next part writes there.
            __syncthreads();
        }
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

/// Moves a slice, as many elements at a time as the block has threads. `place_of_value` is first_place.
template <class T>
COACCEL_PRIM_FUNCTION void move_slice(u64 row_begin, u64 begin, u64 end, const sort_items<T>& from,
                                      const sort_items<T>& to, u64 flip, int shift, u64 place_of_value)
{
    // The next place of each value of the byte, and how many each warp has.
    __shared__ u64 next[256];
    __shared__ u32 counts[8][256];
    next[threadIdx.x] = place_of_value;
    const unsigned warp = threadIdx.x / 32;
    const unsigned warps = blockDim.x / 32;
    for (u64 at = begin; at < end; at += blockDim.x) {
        for (unsigned d = threadIdx.x; d < 256 * warps; d += blockDim.x)
            counts[d / 256][d % 256] = 0;
        __syncthreads();
        const u64 i = row_begin + at + threadIdx.x;
        const bool inside = at + threadIdx.x < end;
        const u32 digit =
            inside ? static_cast<u32>((sort_key(from.keys[i], flip) >> shift) & 255) : 256u;
        // The threads of the warp with the same digit. All threads call this.
        const u32 peers = threads_with_same(digit);
        const u32 before = peers & ((1u << threadIdx.x % 32) - 1);
        if (inside && before == 0)
            counts[warp][digit] = bits_in(peers);
        __syncthreads();
        u64 place = 0;
        if (inside) {
            place = next[digit] + bits_in(before);
            for (unsigned w = 0; w < warp; ++w)
                place += counts[w][digit];
            put_item(to, row_begin + place, from, i);
        }
        __syncthreads();
        for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
            for (unsigned w = 0; w < warps; ++w)
                next[d] += counts[w][d];
        // The next round clears the counts.
        __syncthreads();
    }
}

template <class T>
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
            const u64 end = begin + s.length < l.n ? begin + s.length : l.n;
            move_slice(row * l.n, begin, end, from, to, l.flip, shift, first_place(l, s, counts, row, slice));
        }
    } else {
        sort_short_rows(l, from, to);
    }
}

/// `launch` 0 to 2: a byte of long rows; 3: short rows.
template <class T>
__global__ void sort(u64 launch, sort_shape l, order_slices s, u64 shift, T* from, T* to, u64* counts)
{
    const sort_items<T> source = {from, nullptr};
    const sort_items<T> target = {to, nullptr};
    sort_step(launch, l, s, int(shift), source, target, counts);
}

template <class T>
__global__ void sort_pairs(u64 launch, sort_shape l, order_slices s, u64 shift, T* from, u64* from_values, T* to,
                           u64* to_values, u64* counts)
{
    const sort_items<T> source = {from, from_values};
    const sort_items<T> target = {to, to_values};
    sort_step(launch, l, s, int(shift), source, target, counts);
}

} // namespace coaccel_prim
