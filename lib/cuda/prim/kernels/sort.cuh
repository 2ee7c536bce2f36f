// The kernels of sorts: by the bytes of the keys, from the lowest to the highest one, each time in a stable way. A block
// has 256 threads, one for each value of a byte, and moves a tile of a row at a time.
//
// A row of one tile is sorted by one block in shared memory. For longer rows, a first launch counts the values of all
// bytes in each row, and then there is one launch for each byte. In it a tile learns how many elements of the tiles
// before it have each value of the byte from what their blocks publish while they run ("decoupled look-back"), so that
// each launch reads and writes every element once. Rows of few elements need no bytes: the place of an element is the
// number of elements before it.

namespace coaccel_prim {

struct sort_shape {
    u64 n;
    u64 outer;
    u64 flip;
    /// Of each row.
    u64 tiles;
};

/// Keys and, if `Pairs`, their values.
template <class T>
struct sort_items {
    T* keys;
    u64* values;
};

/// The memory of a sort of several tiles.
struct sort_memory {
    /// For each byte of the keys, the number of the next tile that a block takes.
    u32* next;
    /// For each row, byte and value of the byte, the number of elements; then that of elements with lesser values.
    u64* begins;
    /// For each tile and value of the byte, a count with its state. The launches for even and odd bytes use one each,
    /// and clear the other one.
    u64* states[2];
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
COACCEL_PRIM_FUNCTION u32 digit_of(T x, const sort_shape& l, u32 byte)
{
    return static_cast<u32>(sort_number_of(x, l.flip) >> (8 * byte)) & 255;
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

/// Prepares the memory for the launches that follow: `words` of 32 bits are zero then.
COACCEL_PRIM_FUNCTION void clear_words(u32* to, u64 words)
{
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += u64(gridDim.x) * blockDim.x)
        to[i] = 0;
}

/// The counters for each value of a byte: threads that count the same value at the same time wait for each other.
template <class T>
constexpr u32 digit_counters = sizeof(T) == 8 ? 2 : 4;

/// Counts the values of all bytes of the keys in each row. `own` is shared memory for the counters.
template <class T>
COACCEL_PRIM_FUNCTION void count_digits(const sort_shape& l, const T* keys, u64* counts, u32* own)
{
    constexpr u32 bytes = sizeof(T);
    constexpr u32 copies = digit_counters<T>;
    constexpr u64 part = 65536;
    constexpr u64 size = pack<T>::size;
    const u64 parts = (l.n - 1) / part + 1;
    const auto count = [&](T key) {
        const auto number = sort_number_of(key, l.flip);
        COACCEL_PRIM_UNROLL
        for (u32 b = 0; b < bytes; ++b) {
            const u32 digit = static_cast<u32>(number >> (8 * b)) & 255;
            atomicAdd(&own[(b * 256 + digit) * copies + threadIdx.x % copies], 1u);
        }
    };
    for (u64 item = blockIdx.x; item < l.outer * parts; item += gridDim.x) {
        const u64 row = item / parts;
        const u64 begin = item % parts * part;
        const u64 length = l.n - begin < part ? l.n - begin : part;
        const T* const from = keys + row * l.n + begin;
        for (u32 i = threadIdx.x; i < bytes * 256 * copies; i += blockDim.x)
            own[i] = 0;
        __syncthreads();
        // Up to the first aligned element, then packs, then the rest.
        const u64 unaligned = (16 - reinterpret_cast<u64>(from) % 16) % 16 / sizeof(T);
        const u64 head = unaligned < length ? unaligned : length;
        const u64 packs = (length - head) / size;
        for (u64 i = threadIdx.x; i < head; i += blockDim.x)
            count(from[i]);
        for (u64 i = threadIdx.x; i < packs; i += blockDim.x) {
            const pack<T> loaded = reinterpret_cast<const pack<T>*>(from + head)[i];
            COACCEL_PRIM_UNROLL
            for (u64 k = 0; k < size; ++k)
                count(loaded.of[k]);
        }
        for (u64 i = head + packs * size + threadIdx.x; i < length; i += blockDim.x)
            count(from[i]);
        __syncthreads();
        for (u32 b = 0; b < bytes; ++b) {
            u32 sum = 0;
            for (u32 c = 0; c < copies; ++c)
                sum += own[(b * 256 + threadIdx.x) * copies + c];
            if (sum != 0)
                atomicAdd(&counts[(row * bytes + b) * 256 + threadIdx.x], u64(sum));
        }
        __syncthreads();
    }
}

/// Turns the counts of each row and byte into those of lesser values.
COACCEL_PRIM_FUNCTION void begin_digits(u64 rows_and_bytes, u64* counts)
{
    for (u64 item = blockIdx.x; item < rows_and_bytes; item += gridDim.x) {
        u64* const at = counts + item * 256 + threadIdx.x;
        *at = sum_before(*at);
        __syncthreads();
    }
}

/// The states of a count, in its highest bits: that of the elements of its tile, or also of all tiles before it. Zero:
/// it is not known yet.
constexpr u64 count_of_tile = u64(1) << 62;
constexpr u64 count_with_others = u64(2) << 62;

/// The sum of the counts of all tiles up to this one, whose blocks have begun before that of the caller.
COACCEL_PRIM_FUNCTION u64 look_back(const u64* tile)
{
    for (u64 sum = 0;; tile -= 256) {
        u64 seen;
        do
            seen = read_again(tile);
        while (seen < count_of_tile);
        sum += seen & (count_of_tile - 1);
        if (seen >= count_with_others)
            return sum;
    }
}

/// As in cuda/prim/order.cpp: the elements of each thread in a tile, so that a tile fits into 48 KiB.
template <bool Pairs, class T>
constexpr u32 sorted_by_thread = Pairs || sizeof(T) == 8 ? 12 : 16;

template <bool Pairs, class T>
struct sort_tile {
    static constexpr u32 by_thread = sorted_by_thread<Pairs, T>;
    static constexpr u32 length = 256 * by_thread;
    /// The keys, and when these have been moved, the values.
    union {
        T keys[length];
        u64 values[Pairs ? length : 1];
    };
    /// The counts of the values of the byte in the elements of each warp, then the places of the next ones in the tile.
    u32 counts[8][256];
    /// For each warp and value of the byte, the threads that have it, as bits; zero between elements.
    u32 peers[8][256];
    /// What makes a place in the row of a place in the tile.
    u64 distance[256];
};

/// What a thread has of a tile: every 32nd one of the elements of its warp, which are adjacent.
template <bool Pairs, class T>
struct sort_part {
    static constexpr u32 size = sort_tile<Pairs, T>::by_thread;
    T keys[size];
    /// Those in the tile. Before, those among the elements of the warp with the same byte, which is in the upper half.
    u32 places[size];
    /// The elements of the tile, and how many of them a thread has at most.
    u32 inside;
    u32 each;

    COACCEL_PRIM_MEMBER explicit sort_part(u32 elements) : inside(elements), each((elements + 255) / 256) {}

    COACCEL_PRIM_MEMBER u32 at(u32 k) const { return threadIdx.x / 32 * 32 * each + 32 * k + threadIdx.x % 32; }
    COACCEL_PRIM_MEMBER bool has(u32 k) const { return k < each && at(k) < inside; }

    template <class E>
    COACCEL_PRIM_MEMBER void load(E* elements, const E* from) const
    {
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < size; ++k)
            if (has(k))
                elements[k] = from[at(k)];
    }
    template <class E>
    COACCEL_PRIM_MEMBER void move(const E* elements, E* to) const
    {
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < size; ++k)
            if (has(k))
                to[places[k]] = elements[k];
    }

    /// Ranks the elements of the warp by their order. Its counters are zero before, and counts then.
    COACCEL_PRIM_MEMBER void rank(const sort_shape& l, u32 byte, sort_tile<Pairs, T>& tile)
    {
        u32* const counters = tile.counts[threadIdx.x / 32];
        u32* const peers = tile.peers[threadIdx.x / 32];
        const u32 own = 1u << threadIdx.x % 32;
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < size; ++k) {
            if (k >= each)
                break;
            // Those outside come last in the order of the tile.
            const u32 digit = has(k) ? digit_of(keys[k], l, byte) : 255;
            atomicOr(&peers[digit], own);
            wait_for_warp();
            const u32 with_same = peers[digit];
            const u32 before = bits_in(with_same & (own - 1));
            const u32 earlier = counters[digit];
            wait_for_warp();
            if (before == 0) {
                counters[digit] = earlier + bits_in(with_same);
                peers[digit] = 0;
            }
            wait_for_warp();
            places[k] = (earlier + before) | digit << 16;
        }
    }

    /// Turns the ranks into places in the tile, whose counters are the first places for each value of the byte.
    COACCEL_PRIM_MEMBER void place(const sort_tile<Pairs, T>& tile)
    {
        const u32* const counters = tile.counts[threadIdx.x / 32];
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < size; ++k)
            if (has(k))
                places[k] = (places[k] & 0xffff) + counters[places[k] >> 16];
    }
};

/// Clears the counters of the warp.
template <class Tile>
COACCEL_PRIM_FUNCTION void clear_counters(Tile& tile)
{
    for (u32 d = threadIdx.x % 32; d < 256; d += 32)
        tile.counts[threadIdx.x / 32][d] = tile.peers[threadIdx.x / 32][d] = 0;
    wait_for_warp();
}

/// Turns the counts of each warp for the byte threadIdx.x into those of the warps before it, and returns the sum.
COACCEL_PRIM_FUNCTION u32 sum_over_warps(u32 (*counts)[256])
{
    u32 sum = 0;
    COACCEL_PRIM_UNROLL
    for (u32 w = 0; w < 8; ++w) {
        const u32 of_warp = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = sum;
        sum += of_warp;
    }
    return sum;
}

COACCEL_PRIM_FUNCTION void add_to_warps(u32 (*counts)[256], u32 begin)
{
    COACCEL_PRIM_UNROLL
    for (u32 w = 0; w < 8; ++w)
        counts[w][threadIdx.x] += begin;
}

/// Sorts rows of one tile by one byte after the other.
template <bool Pairs, class T>
COACCEL_PRIM_FUNCTION void sort_small_rows(const sort_shape& l, const sort_items<T>& from, const sort_items<T>& to,
                                           sort_tile<Pairs, T>& tile)
{
    typedef sort_part<Pairs, T> part;
    for (u64 row = blockIdx.x; row < l.outer; row += gridDim.x) {
        part own(static_cast<u32>(l.n));
        u64 values[Pairs ? part::size : 1];
        own.load(own.keys, static_cast<const T*>(from.keys + row * l.n));
        if constexpr (Pairs)
            own.load(values, static_cast<const u64*>(from.values + row * l.n));
        for (u32 byte = 0; byte < sizeof(T); ++byte) {
            clear_counters(tile);
            own.rank(l, byte, tile);
            __syncthreads();
            const u32 sum = sum_over_warps(tile.counts);
            add_to_warps(tile.counts, static_cast<u32>(sum_before(sum)));
            __syncthreads();
            own.place(tile);
            own.move(own.keys, tile.keys);
            __syncthreads();
            own.load(own.keys, static_cast<const T*>(tile.keys));
            __syncthreads();
            if constexpr (Pairs) {
                own.move(values, tile.values);
                __syncthreads();
                own.load(values, static_cast<const u64*>(tile.values));
                __syncthreads();
            }
        }
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < part::size; ++k)
            if (own.has(k)) {
                to.keys[row * l.n + own.at(k)] = own.keys[k];
                if constexpr (Pairs)
                    to.values[row * l.n + own.at(k)] = values[k];
            }
    }
}

/// Moves all elements to their places by one byte.
template <bool Pairs, class T>
COACCEL_PRIM_FUNCTION void sort_by_byte(const sort_shape& l, u32 byte, const sort_items<T>& from,
                                        const sort_items<T>& to, const sort_memory& memory, sort_tile<Pairs, T>& tile)
{
    typedef sort_part<Pairs, T> part;
    constexpr u32 length = sort_tile<Pairs, T>::length;
    __shared__ u64 taken;
    const bool odd = byte % 2 != 0;
    u64* const states = odd ? memory.states[1] : memory.states[0];
    u64* const next_states = odd ? memory.states[0] : memory.states[1];
    for (;;) {
        // In the order in which blocks begin, so that no tile waits for one whose block cannot begin.
        if (threadIdx.x == 0)
            taken = atomicAdd(memory.next + byte, 1u);
        clear_counters(tile);
        __syncthreads();
        const u64 number = taken;
        if (number >= l.outer * l.tiles)
            return;
        const u64 row = number / l.tiles;
        const u64 index = number % l.tiles;
        const u64 first = row * l.n + index * length;
        const u64 left = l.n - index * length;
        part own(left < length ? static_cast<u32>(left) : length);
        own.load(own.keys, static_cast<const T*>(from.keys + first));
        own.rank(l, byte, tile);
        __syncthreads();
        const u32 sum = sum_over_warps(tile.counts);
        u64* const state = states + number * 256 + threadIdx.x;
        publish(state, u64(sum) | (index == 0 ? count_with_others : count_of_tile));
        next_states[number * 256 + threadIdx.x] = 0;
        const u32 begin = static_cast<u32>(sum_before(sum));
        add_to_warps(tile.counts, begin);
        __syncthreads();
        own.place(tile);
        own.move(own.keys, tile.keys);
        u64 values[Pairs ? part::size : 1];
        if constexpr (Pairs)
            own.load(values, static_cast<const u64*>(from.values + first));
        u64 before = 0;
        if (index != 0) {
            before = look_back(state - 256);
            publish(state, (before + sum) | count_with_others);
        }
        tile.distance[threadIdx.x] =
            row * l.n + memory.begins[(row * sizeof(T) + byte) * 256 + threadIdx.x] + before - begin;
        __syncthreads();
        u8 digits[Pairs ? part::size : 1];
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < part::size; ++k) {
            const u32 i = threadIdx.x + 256 * k;
            if (i < own.inside) {
                const T key = tile.keys[i];
                const u32 digit = digit_of(key, l, byte);
                to.keys[tile.distance[digit] + i] = key;
                if constexpr (Pairs)
                    digits[k] = static_cast<u8>(digit);
            }
        }
        // The values, or the next tile, are written there.
        __syncthreads();
        if constexpr (Pairs) {
            own.move(values, tile.values);
            __syncthreads();
            COACCEL_PRIM_UNROLL
            for (u32 k = 0; k < part::size; ++k) {
                const u32 i = threadIdx.x + 256 * k;
                if (i < own.inside)
                    to.values[tile.distance[digits[k]] + i] = tile.values[i];
            }
            __syncthreads();
        }
    }
}

/// The launches of a sort. As in cuda/prim/order.cpp.
enum sort_launch : u64 { sort_clear, sort_count, sort_begin, sort_move, sort_small, sort_short };

/// `what`: the byte, or the words to be cleared.
template <bool Pairs, class T>
COACCEL_PRIM_FUNCTION void sort_step(u64 launch, const sort_shape& l, u64 what, const sort_items<T>& from,
                                     const sort_items<T>& to, const sort_memory& memory)
{
    __shared__ sort_tile<Pairs, T> tile;
    static_assert(sizeof(tile) >= sizeof(u32) * 256 * sizeof(T) * digit_counters<T>, "room for the counters");
    if (launch == sort_short)
        sort_short_rows<Pairs>(l, from, to);
    else if (launch == sort_small)
        sort_small_rows<Pairs>(l, from, to, tile);
    else if (launch == sort_clear)
        clear_words(memory.next, what);
    else if (launch == sort_count)
        count_digits(l, from.keys, memory.begins, reinterpret_cast<u32*>(&tile));
    else if (launch == sort_begin)
        begin_digits(l.outer * sizeof(T), memory.begins);
    else
        sort_by_byte<Pairs>(l, static_cast<u32>(what), from, to, memory, tile);
}

template <class T>
COACCEL_PRIM_KERNEL_OF(4)
sort(u64 launch, sort_shape l, u64 what, T* from, T* to, sort_memory memory)
{
    const sort_items<T> source = {from, nullptr};
    const sort_items<T> target = {to, nullptr};
    sort_step<false>(launch, l, what, source, target, memory);
}

template <class T>
COACCEL_PRIM_KERNEL_OF(3)
sort_pairs(u64 launch, sort_shape l, u64 what, T* from, u64* from_values, T* to, u64* to_values, sort_memory memory)
{
    const sort_items<T> source = {from, from_values};
    const sort_items<T> target = {to, to_values};
    sort_step<true>(launch, l, what, source, target, memory);
}

} // namespace coaccel_prim
