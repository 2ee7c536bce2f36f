// The bins of histograms. Shared as functions.cuh.

namespace coaccel_prim {

/// The bin of x among even ones from low to high; `bins` if x is outside or NaN. The product comes first, so that whole
/// numbers at the borders of bins are exact.
COACCEL_PRIM_FUNCTION u64 bin_of(double x, double low, double high, u64 bins)
{
    if (!(x >= low && x < high))
        return bins;
    const u64 bin = static_cast<u64>((x - low) * static_cast<double>(bins) / (high - low));
    return bin < bins ? bin : bins - 1;
}

} // namespace coaccel_prim
