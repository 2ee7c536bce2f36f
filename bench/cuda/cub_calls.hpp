#ifndef COACCEL_BENCH_CUDA_CUB_CALLS_HPP
#define COACCEL_BENCH_CUDA_CUB_CALLS_HPP

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace coaccel::bench {

/// The operands of an algorithm of CUB, in device memory.
struct cub_arrays {
    const float* x;
    float* y;
    const std::uint64_t* values;
    std::uint64_t* sorted_values;
    std::size_t n;
};

enum class cub_algorithm : std::uint8_t { sum, inclusive_sum, sort_keys, sort_pairs };

/// Calls an algorithm of CUB, compiled by nvcc. With a null `temporary` it only sets `bytes`, the size of the memory
/// that it needs. Returns null, or the name of an error.
const char* call_cub(cub_algorithm a, const cub_arrays& on, void* temporary, std::size_t& bytes, CUstream_st* stream);

} // namespace coaccel::bench

#endif
