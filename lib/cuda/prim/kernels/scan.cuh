// The kernel of scans. It is launched up to three times: the first launch reduces each slice of each row, the second
// one scans these parts, the third one scans the slices, each of which begins with its part. A row that is one slice
// needs only the third one.

namespace coaccel_prim {

/// The values of the threads before this one, joined; thread 0 gets `neutral`. `all` is that of all threads, whose
/// number is a multiple of 32.
template <class Fold>
COACCEL_PRIM_FUNCTION typename Fold::state
scanned_before(const typename Fold::state& own, const typename Fold::state& neutral, typename Fold::state& all)
{
    typedef typename Fold::state state;
    __shared__ state warps[8];
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    state sum = own;
    COACCEL_PRIM_UNROLL
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const state other = value_of(sum, lane < distance ? lane : lane - distance);
        if (lane >= distance)
            sum = Fold::join(other, sum);
    }
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    state before = neutral;
    all = neutral;
    for (u32 w = 0; w < blockDim.x / 32; ++w) {
        if (w == warp)
            before = all;
        all = Fold::join(all, warps[w]);
    }
    const state in_warp = value_of(sum, lane == 0 ? 0 : lane - 1);
    // The next call writes there.
    __syncthreads();
    return lane == 0 ? before : Fold::join(before, in_warp);
}

struct scan_shape {
    u64 n;
    u64 outer;
    u64 inner;
    u64 exclusive;
};

/// The elements that a thread scans before the threads of the block combine theirs. They are adjacent.
template <class T>
struct scan_part {
    static constexpr u32 size = sizeof(T) == 8 ? 4 : 8;
    /// At most 16 bytes are loaded or stored at a time.
    typedef pack<T, (size * sizeof(T) < 16 ? size : 16 / sizeof(T))> piece;
    static constexpr u32 pieces = size / piece::size;
    T of[size];

    /// The elements from `first` to `end`, as far as they belong to the part. `adjacent`: all of them are in memory
    /// where a piece can be.
    COACCEL_PRIM_MEMBER void load(const T* x, u64 inner, u64 first, u64 end, bool adjacent)
    {
        if (adjacent && first + size <= end) {
            COACCEL_PRIM_UNROLL
            for (u32 p = 0; p < pieces; ++p) {
                const piece loaded = reinterpret_cast<const piece*>(x + first)[p];
                COACCEL_PRIM_UNROLL
                for (u32 k = 0; k < piece::size; ++k)
                    of[p * piece::size + k] = loaded.of[k];
            }
            return;
        }
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < size; ++k)
            if (first + k < end)
                of[k] = x[(first + k) * inner];
    }
    COACCEL_PRIM_MEMBER void store(T* y, u64 inner, u64 first, u64 end, bool adjacent) const
    {
        if (adjacent && first + size <= end) {
            COACCEL_PRIM_UNROLL
            for (u32 p = 0; p < pieces; ++p) {
                piece made;
                COACCEL_PRIM_UNROLL
                for (u32 k = 0; k < piece::size; ++k)
                    made.of[k] = of[p * piece::size + k];
                reinterpret_cast<piece*>(y + first)[p] = made;
            }
            return;
        }
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < size; ++k)
            if (first + k < end)
                y[(first + k) * inner] = of[k];
    }
    COACCEL_PRIM_FUNCTION bool fits(const T* x) { return reinterpret_cast<u64>(x) % sizeof(piece) == 0; }
};

/// Scans elements begin to end of a row, with `before` joined to all of them. The result may be x.
template <class Fold, class T>
COACCEL_PRIM_FUNCTION void scan_slice(const T* x, T* y, u64 inner, u64 begin, u64 end, bool exclusive,
                                      typename Fold::state before, const typename Fold::state& neutral)
{
    typedef typename Fold::state state;
    typedef scan_part<T> part;
    const bool adjacent = inner == 1 && part::fits(x + begin) && part::fits(y + begin);
    for (u64 at = begin; at < end; at += u64(blockDim.x) * part::size) {
        const u64 first = at + u64(threadIdx.x) * part::size;
        part own;
        own.load(x, inner, first, end, adjacent);
        state sum = neutral;
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < part::size; ++k)
            if (first + k < end)
                sum = Fold::join(sum, Fold::start(own.of[k], 0));
        state all;
        sum = Fold::join(before, scanned_before<Fold>(sum, neutral, all));
        COACCEL_PRIM_UNROLL
        for (u32 k = 0; k < part::size; ++k) {
            if (first + k >= end)
                break;
            const state next = Fold::join(sum, Fold::start(own.of[k], 0));
            own.of[k] = Fold::end(exclusive ? sum : next);
            sum = next;
        }
        own.store(y, inner, first, end, adjacent);
        before = Fold::join(before, all);
    }
}

/// Scans the parts of a row, in place.
template <class Fold>
COACCEL_PRIM_FUNCTION void scan_parts(typename Fold::state* parts, u64 count, const typename Fold::state& neutral)
{
    typedef typename Fold::state state;
    state before = neutral;
    for (u64 at = 0; at < count; at += blockDim.x) {
        const u64 i = at + threadIdx.x;
        state all;
        const state others = scanned_before<Fold>(i < count ? parts[i] : neutral, neutral, all);
        if (i < count)
            parts[i] = Fold::join(before, others);
        before = Fold::join(before, all);
    }
}

template <class Function, class T>
COACCEL_PRIM_KERNEL scan(u64 launch, scan_shape l, slices s, const T* x, T* y, T none,
                         typename value_fold<Function, T>::state* parts)
{
    typedef value_fold<Function, T> fold;
    typedef typename fold::state state;
    const state neutral = fold::start(none, 0);
    const u64 rows = l.outer * l.inner;
    if (s.by_thread) {
        const u64 step = u64(gridDim.x) * blockDim.x;
        for (u64 row = u64(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += step) {
            const u64 first = row / l.inner * l.n * l.inner + row % l.inner;
            state sum = neutral;
            for (u64 k = 0; k < l.n; ++k) {
                const state next = fold::join(sum, fold::start(x[first + k * l.inner], 0));
                y[first + k * l.inner] = fold::end(l.exclusive ? sum : next);
                sum = next;
            }
        }
        return;
    }
    if (launch == 1) {
        for (u64 row = blockIdx.x; row < rows; row += gridDim.x)
            scan_parts<fold>(parts + row * s.count, s.count, neutral);
        return;
    }
    for (u64 item = blockIdx.x; item < rows * s.count; item += gridDim.x) {
        const u64 row = item / s.count;
        const u64 first = row / l.inner * l.n * l.inner + row % l.inner;
        const u64 begin = item % s.count * s.length;
        const u64 rest = l.n - begin;
        const u64 end = begin + (rest < s.length ? rest : s.length);
        if (launch == 0) {
            const state all = l.inner == 1 ? block_fold_adjacent<fold>(x + first, begin, end)
                                           : block_fold<fold>(x + first, place_in_column{l.inner}, begin, end);
            if (threadIdx.x == 0)
                parts[item] = all;
        } else {
            scan_slice<fold>(x + first, y + first, l.inner, begin, end, l.exclusive != 0,
                             s.count == 1 ? neutral : parts[item], neutral);
        }
    }
}

} // namespace coaccel_prim
