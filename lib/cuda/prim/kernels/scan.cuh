// The kernel of scans. It is launched up to three times: the first launch reduces each slice of each row, the second
// one scans these parts, the third one scans the slices, each of which begins with its part. A row that is one slice
// needs only the third one.

namespace coaccel_prim {

/// How many elements a thread scans before the threads of the block combine theirs.
constexpr u64 scanned_by_thread = 8;

/// The values of the threads before this one, joined; thread 0 gets `neutral`. `all` is that of all threads.
template <class Fold>
COACCEL_PRIM_FUNCTION typename Fold::state
scanned_before(const typename Fold::state& own, const typename Fold::state& neutral, typename Fold::state& all)
{
    typedef typename Fold::state state;
    __shared__ state parts[256];
    parts[threadIdx.x] = own;
    __syncthreads();
    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        state sum = parts[threadIdx.x];
        if (threadIdx.x >= distance)
            sum = Fold::join(parts[threadIdx.x - distance], sum);
        __syncthreads();
        parts[threadIdx.x] = sum;
        __syncthreads();
    }
    all = parts[blockDim.x - 1];
    const state before = threadIdx.x == 0 ? neutral : parts[threadIdx.x - 1];
    // The next call writes there.
    __syncthreads();
    return before;
}

struct scan_shape {
    u64 n;
    u64 outer;
    u64 inner;
    u64 exclusive;
};

/// Scans elements begin to end of a row, with `before` joined to all of them.
template <class Fold, class T>
COACCEL_PRIM_FUNCTION void scan_slice(const T* x, T* y, u64 inner, u64 begin, u64 end, bool exclusive,
                                      typename Fold::state before, const typename Fold::state& neutral)
{
    typedef typename Fold::state state;
    for (u64 at = begin; at < end; at += u64(blockDim.x) * scanned_by_thread) {
        const u64 first = at + u64(threadIdx.x) * scanned_by_thread;
        state own[scanned_by_thread];
        state sum = neutral;
        for (u64 k = 0; k < scanned_by_thread; ++k) {
            if (exclusive)
                own[k] = sum;
            if (first + k < end)
                sum = Fold::join(sum, Fold::start(x[(first + k) * inner], 0));
            if (!exclusive)
                own[k] = sum;
        }
        state all;
        const state others = Fold::join(before, scanned_before<Fold>(sum, neutral, all));
        for (u64 k = 0; k < scanned_by_thread; ++k)
            if (first + k < end)
                y[(first + k) * inner] = Fold::end(Fold::join(others, own[k]));
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
