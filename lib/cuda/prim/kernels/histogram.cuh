// The kernel of histograms. The first launch clears the counts, the second one counts: few bins in the shared memory of
// each block first, many directly in the result.

namespace coaccel_prim {

/// As in cuda/prim/histogram.cpp.
struct histogram_shape {
    u64 n;
    u64 bins;
    f64 low;
    f64 high;
};

/// As in prim/order_slices.hpp. They take 32 KiB, with which a multiprocessor of sm_90 runs six blocks.
constexpr u64 most_shared_bins = 8192;

template <class T>
COACCEL_PRIM_FUNCTION u64 bin_of_element(const histogram_shape& l, T x)
{
    return bin_of(static_cast<f64>(computed<T>::load(x)), l.low, l.high, l.bins);
}

template <class T>
COACCEL_PRIM_FUNCTION void count_in_block(const histogram_shape& l, const T* x, u64 begin, u64 end, u64* counts)
{
    __shared__ u32 own[most_shared_bins];
    for (u64 b = threadIdx.x; b < l.bins; b += blockDim.x)
        own[b] = 0;
    __syncthreads();
    for (u64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const u64 bin = bin_of_element(l, x[i]);
        if (bin < l.bins)
            atomicAdd(&own[bin], 1u);
    }
    __syncthreads();
    for (u64 b = threadIdx.x; b < l.bins; b += blockDim.x)
        if (own[b] != 0)
            atomicAdd(&counts[b], u64(own[b]));
    // The next slice writes there.
    __syncthreads();
}

/// Adds once for each bin that elements of a warp are in, because equal bins would wait for each other.
template <class T>
COACCEL_PRIM_FUNCTION void count_in_result(const histogram_shape& l, const T* x, u64 begin, u64 end, u64* counts)
{
    const u32 lower_lanes = (1u << threadIdx.x % 32) - 1;
    for (u64 at = begin; at < end; at += blockDim.x) {
        const u64 i = at + threadIdx.x;
        const u64 bin = i < end ? bin_of_element(l, x[i]) : l.bins;
        const u32 same = threads_with_same(bin);
        if (bin < l.bins && (same & lower_lanes) == 0)
            atomicAdd(&counts[bin], u64(bits_in(same)));
    }
}

template <class T>
COACCEL_PRIM_KERNEL histogram(u64 launch, histogram_shape l, order_slices s, const T* x, u64* counts)
{
    if (launch == 0) {
        clear_range(counts, 0, l.bins);
        return;
    }
    for (u64 slice = blockIdx.x; slice < s.count; slice += gridDim.x) {
        const u64 begin = slice * s.length;
        const u64 end = l.n - begin < s.length ? l.n : begin + s.length;
        if (l.bins <= most_shared_bins)
            count_in_block(l, x, begin, end, counts);
        else
            count_in_result(l, x, begin, end, counts);
    }
}

} // namespace coaccel_prim
