// The kernels that move elements.

namespace coaccel_prim {

/// Indices of an element in outer x n x inner.
struct axis_place {
    u64 outer;
    u64 n;
    u64 inner;
};

COACCEL_PRIM_FUNCTION axis_place axis_place_of(u64 i, u64 count, u64 n, u64 inner)
{
    axis_place p;
    // A division of 32 bits takes a fraction of the time.
    if (count <= 0xffffffffull) {
        const u32 row = static_cast<u32>(i) / static_cast<u32>(inner);
        p.inner = static_cast<u32>(i) - row * static_cast<u32>(inner);
        p.outer = row / static_cast<u32>(n);
        p.n = row - static_cast<u32>(p.outer) * static_cast<u32>(n);
    } else {
        const u64 row = i / inner;
        p.inner = i - row * inner;
        p.outer = row / n;
        p.n = row - p.outer * n;
    }
    return p;
}

template <class T>
COACCEL_PRIM_KERNEL gather(u64 n, u64 m, u64 outer, u64 inner, const T* x, const u64* indices, T* y)
{
    const u64 count = outer * m * inner;
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const axis_place p = axis_place_of(i, count, m, inner);
        const u64 from = indices[p.n];
        y[i] = from < n ? x[(p.outer * n + from) * inner + p.inner] : T();
    }
}

/// Three launches: the first one clears `last`, the second one stores in it the greatest number of an index with this
/// value, plus one, the third one moves the elements of these indices.
template <class T>
COACCEL_PRIM_KERNEL scatter(u64 launch, u64 n, u64 m, u64 outer, u64 inner, const T* x, const u64* indices, T* y,
                            u64* last)
{
    const u64 step = u64(gridDim.x) * blockDim.x;
    const u64 first = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (launch == 0) {
        for (u64 i = first; i < n; i += step)
            last[i] = 0;
    } else if (launch == 1) {
        for (u64 i = first; i < m; i += step)
            if (indices[i] < n)
                atomicMax(&last[indices[i]], i + 1);
    } else {
        const u64 count = outer * m * inner;
        for (u64 i = first; i < count; i += step) {
            const axis_place p = axis_place_of(i, count, m, inner);
            const u64 to = indices[p.n];
            if (to < n && last[to] == p.n + 1)
                y[(p.outer * n + to) * inner + p.inner] = x[i];
        }
    }
}

template <class T>
COACCEL_PRIM_KERNEL concat(u64 n, u64 m, u64 outer, u64 inner, const T* a, const T* b, T* y)
{
    const u64 count = outer * (n + m) * inner;
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const axis_place p = axis_place_of(i, count, n + m, inner);
        y[i] = p.n < n ? a[(p.outer * n + p.n) * inner + p.inner] : b[(p.outer * m + (p.n - n)) * inner + p.inner];
    }
}

/// As pad_loops in prim/pad_loops.hpp.
struct pad_loops {
    u64 count;
    u64 rank;
    u64 dims[6];
    u64 before[6];
    u64 result[6];
};

template <class Index, class T>
COACCEL_PRIM_FUNCTION T padded_element(const pad_loops& l, Index i, const T* x, T value)
{
    u64 at = 0;
    u64 stride = 1;
    for (u64 d = l.rank; d-- > 0;) {
        const Index size = static_cast<Index>(l.result[d]);
        const Index rest = i / size;
        // Before the first element, the difference wraps around to a large number.
        const u64 inside = u64(i - rest * size) - l.before[d];
        if (inside >= l.dims[d])
            return value;
        at += inside * stride;
        stride *= l.dims[d];
        i = rest;
    }
    return x[at];
}

template <class T>
COACCEL_PRIM_KERNEL pad(pad_loops l, const T* x, T* y, T value)
{
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < l.count; i += step)
        y[i] = l.count <= 0xffffffffull ? padded_element(l, static_cast<u32>(i), x, value)
                                        : padded_element(l, i, x, value);
}

template <class T>
struct copy_body {
    const T* x;
    T* y;
    __device__ void operator()(const u64* at) const { y[at[1]] = x[at[0]]; }
};

/// Elements of the last dimension of y that are not adjacent in x. With `tiles`, the dimension before it is adjacent in
/// x, and squares of 32 x 32 elements go through shared memory, so that memory is read and written in order. The loops
/// then have rank 2, or 3 with separate matrices.
template <class T>
COACCEL_PRIM_KERNEL transpose(u64 tiles, loops<2> l, const T* x, T* y)
{
    if (!tiles) {
        for_each(l, copy_body<T>{x, y});
        return;
    }
    constexpr u64 side = 32;
    // One more column than a square has, so that the threads use different banks.
    __shared__ T tile[side * (side + 1)];
    const u64 r = l.rank - 2;
    const u64 rows = l.dims[r];
    const u64 columns = l.dims[r + 1];
    const u64 down = (rows + side - 1) / side;
    const u64 across = (columns + side - 1) / side;
    const u64 matrices = l.rank == 3 ? l.dims[0] : 1;
    const u64 own_column = threadIdx.x % side;
    const u64 own_row = threadIdx.x / side;
    const u64 together = blockDim.x / side;
    for (u64 t = blockIdx.x; t < matrices * down * across; t += gridDim.x) {
        const u64 matrix = t / (down * across);
        const u64 first_row = t / across % down * side;
        const u64 first_column = t % across * side;
        const T* from = x + (l.rank == 3 ? matrix * l.strides[0][0] : 0);
        T* to = y + (l.rank == 3 ? matrix * l.strides[1][0] : 0);
        for (u64 k = own_row; k < side; k += together) {
            const u64 row = first_row + own_column;
            const u64 column = first_column + k;
            if (row < rows && column < columns)
                tile[own_column * (side + 1) + k] = from[row * l.strides[0][r] + column * l.strides[0][r + 1]];
        }
        __syncthreads();
        for (u64 k = own_row; k < side; k += together) {
            const u64 row = first_row + k;
            const u64 column = first_column + own_column;
            if (row < rows && column < columns)
                to[row * l.strides[1][r] + column * l.strides[1][r + 1]] = tile[k * (side + 1) + own_column];
        }
        // The next square is written there.
        __syncthreads();
    }
}

} // namespace coaccel_prim
