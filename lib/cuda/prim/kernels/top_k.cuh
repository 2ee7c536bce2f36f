// The kernel of top_k. A block finds the k-th key of a slice from its highest bits to its lowest ones, collects the
// elements before it in the order of their indices, and sorts them. A second launch does the same with the elements
// that the slices of a row gave.

namespace coaccel_prim {

/// Elements with their indices. Without an array of indices, they are counted from `first`.
template <class T>
struct candidates {
    const T* values;
    const u64* indices;
    u64 first;
    u64 count;

    __device__ u64 index(u64 i) const { return indices ? indices[i] : first + i; }
};

/// A key, and how many elements with it belong to the first k.
struct limit {
    u64 key;
    u64 equal;
};

template <class T>
COACCEL_PRIM_FUNCTION limit find_limit(const candidates<T>& c, u64 k, u64 flip)
{
    __shared__ u64 counts[256];
    __shared__ u64 digit;
    __shared__ u64 left;
    u64 key = 0;
    u64 rest = k;
    for (int shift = 8 * int(sizeof(T)) - 8; shift >= 0; shift -= 8) {
        for (unsigned d = threadIdx.x; d < 256; d += blockDim.x)
            counts[d] = 0;
        __syncthreads();
        for (u64 i = threadIdx.x; i < c.count; i += blockDim.x) {
            const u64 own = sort_key(c.values[i], flip);
            if ((own >> shift) >> 8 == (key >> shift) >> 8)
                atomicAdd(&counts[(own >> shift) & 255], u64(1));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u64 before = 0;
            u64 d = 0;
            for (; d < 255 && before + counts[d] < rest; ++d)
                before += counts[d];
            digit = d;
            left = rest - before;
        }
        __syncthreads();
        key |= digit << shift;
        rest = left;
        // The next round writes there.
        __syncthreads();
    }
    limit made;
    made.key = key;
    made.equal = rest;
    return made;
}

/// Writes the elements before the limit, then those at the limit, both in the order of their indices.
template <class T>
COACCEL_PRIM_FUNCTION void collect(const candidates<T>& c, u64 k, u64 flip, const limit& end, T* values, u64* indices)
{
    // Those before the limit are counted in the lower half, those at the limit in the upper half.
    constexpr u64 equal = u64(1) << 32;
    u64 next = 0;
    u64 next_equal = k - end.equal;
    for (u64 at = 0; at < c.count; at += blockDim.x) {
        const u64 i = at + threadIdx.x;
        u64 own = 0;
        if (i < c.count) {
            const u64 key = sort_key(c.values[i], flip);
            own = key < end.key ? 1 : key == end.key ? equal : 0;
        }
        u64 all;
        const u64 before = scanned_before<adding_counts>(own, 0, all);
        if (own == 1) {
            values[next + (before & (equal - 1))] = c.values[i];
            indices[next + (before & (equal - 1))] = c.index(i);
        } else if (own == equal && next_equal + (before >> 32) < k) {
            values[next_equal + (before >> 32)] = c.values[i];
            indices[next_equal + (before >> 32)] = c.index(i);
        }
        next += all & (equal - 1);
        next_equal += all >> 32;
    }
    // Other threads read them.
    __syncthreads();
}

template <class T>
COACCEL_PRIM_FUNCTION void put_in_order(T* values, u64* indices, u64 a, u64 b, u64 flip)
{
    const u64 key_a = sort_key(values[a], flip);
    const u64 key_b = sort_key(values[b], flip);
    if (key_a < key_b || (key_a == key_b && indices[a] < indices[b]))
        return;
    const T value = values[a];
    values[a] = values[b];
    values[b] = value;
    const u64 index = indices[a];
    indices[a] = indices[b];
    indices[b] = index;
}

/// A bitonic sort by key and index. Elements beyond k count as greater than all others: they are never exchanged,
/// because the first one of a pair gets the lesser element.
template <class T>
COACCEL_PRIM_FUNCTION void sort_found(T* values, u64* indices, u64 k, u64 flip)
{
    u64 pairs = 1;
    while (2 * pairs < k)
        pairs *= 2;
    for (u64 size = 2; size / 2 < k; size *= 2) {
        for (u64 p = threadIdx.x; p < pairs; p += blockDim.x) {
            const u64 begin = p / (size / 2) * size;
            const u64 offset = p % (size / 2);
            if (begin + size - 1 - offset < k)
                put_in_order(values, indices, begin + offset, begin + size - 1 - offset, flip);
        }
        __syncthreads();
        for (u64 part = size / 2; part > 1; part /= 2) {
            for (u64 p = threadIdx.x; p < pairs; p += blockDim.x) {
                const u64 a = p / (part / 2) * part + p % (part / 2);
                if (a + part / 2 < k)
                    put_in_order(values, indices, a, a + part / 2, flip);
            }
            __syncthreads();
        }
    }
}

template <class T>
COACCEL_PRIM_FUNCTION void find_first(const candidates<T>& c, u64 k, u64 flip, T* values, u64* indices)
{
    collect(c, k, flip, find_limit(c, k, flip), values, indices);
    sort_found(values, indices, k, flip);
}

struct top_k_shape {
    u64 n;
    u64 k;
    u64 outer;
    u64 flip;
};

/// `part_indices` and `part_values`: the elements of the slices, k for each.
template <class T>
COACCEL_PRIM_KERNEL top_k(u64 second, top_k_shape l, order_slices s, const T* x, T* values, u64* indices,
                          T* part_values, u64* part_indices)
{
    const u64 last = l.n - (s.count - 1) * s.length;
    candidates<T> c;
    if (second) {
        c.first = 0;
        c.count = (s.count - 1) * l.k + (last < l.k ? last : l.k);
        for (u64 row = blockIdx.x; row < l.outer; row += gridDim.x) {
            c.values = part_values + row * s.count * l.k;
            c.indices = part_indices + row * s.count * l.k;
            find_first(c, l.k, l.flip, values + row * l.k, indices + row * l.k);
        }
        return;
    }
    c.indices = nullptr;
    for (u64 item = blockIdx.x; item < l.outer * s.count; item += gridDim.x) {
        const u64 slice = item % s.count;
        c.first = slice * s.length;
        c.count = slice + 1 < s.count ? s.length : last;
        c.values = x + item / s.count * l.n + c.first;
        if (s.count == 1)
            find_first(c, l.k, l.flip, values + item * l.k, indices + item * l.k);
        else
            find_first(c, c.count < l.k ? c.count : l.k, l.flip, part_values + item * l.k, part_indices + item * l.k);
    }
}

} // namespace coaccel_prim
