#include "cub_calls.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

namespace coaccel::bench {
namespace {

cudaError_t call(cub_algorithm a, const cub_arrays& on, void* temporary, std::size_t& bytes, cudaStream_t stream)
{
    const auto n = static_cast<std::int64_t>(on.n);
    switch (a) {
    case cub_algorithm::sum: return cub::DeviceReduce::Sum(temporary, bytes, on.x, on.y, n, stream);
    case cub_algorithm::inclusive_sum: return cub::DeviceScan::InclusiveSum(temporary, bytes, on.x, on.y, n, stream);
    case cub_algorithm::sort_keys:
        return cub::DeviceRadixSort::SortKeys(temporary, bytes, on.x, on.y, n, 0, 32, stream);
    case cub_algorithm::sort_pairs:
        return cub::DeviceRadixSort::SortPairs(temporary, bytes, on.x, on.y, on.values, on.sorted_values, n, 0, 32,
                                               stream);
    }
    return cudaErrorInvalidValue;
}

} // namespace

const char* call_cub(cub_algorithm a, const cub_arrays& on, void* temporary, std::size_t& bytes, CUstream_st* stream)
{
    const auto status = call(a, on, temporary, bytes, stream);
    return status == cudaSuccess ? nullptr : cudaGetErrorName(status);
}

} // namespace coaccel::bench
