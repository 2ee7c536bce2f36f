// The kernels of sorts: by the bytes of the keys, from the lowest to the highest one, each time in a stable way. For
// each byte there are three launches: the first one counts the values of the byte in each slice, the second one turns
// the counts into places, the third one moves the elements. Short rows need one launch: the place of an element is the
// number of elements before it.

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

/// `counts` has a place for each row, value of the byte, and slice, in this order.
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

/// Moves a slice, as many elements at a time as the block has threads.
template <class T>
COACCEL_PRIM_FUNCTION void move_slice(u64 row_begin, u64 begin, u64 end, const sort_items<T>& from,
                                      const sort_items<T>& to, u64 flip, int shift, const u64* places, u64 distance)
{
    // The next place of each value of the byte, and how many each warp has.
    __shared__ u64 next[256];
    __shared__ u32 counts[8][256];
    for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
        next[d] = places[d * distance];
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
        for (u64 row = blockIdx.x; row < l.outer; row += gridDim.x)
            scan_parts<adding_counts>(counts + row * 256 * s.count, 256 * s.count, 0);
    } else if (launch == 2) {
        for (u64 item = blockIdx.x; item < l.outer * s.count; item += gridDim.x) {
            const u64 row = item / s.count;
            const u64 slice = item % s.count;
            const u64 begin = slice * s.length;
            const u64 end = begin + s.length < l.n ? begin + s.length : l.n;
            move_slice(row * l.n, begin, end, from, to, l.flip, shift, counts + row * 256 * s.count + slice, s.count);
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
