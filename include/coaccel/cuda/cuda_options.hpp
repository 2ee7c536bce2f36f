#ifndef COACCEL_CUDA_CUDA_OPTIONS_HPP
#define COACCEL_CUDA_CUDA_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <cstdint>

namespace coaccel {

/// Whether the results of blas::* are bitwise reproducible.
enum class blas_mode : std::uint8_t {
    /// Identical bits for the same input on the same GPU and library, with the same results of device::async_tune.
    deterministic,
    /// cuBLAS may use atomic additions where they are faster.
    fast,
};

/// Options of the CUDA backend.
struct cuda_options {
    /// The maximum bytes of buffers and of the cuBLAS workspace; 0: the memory of the GPU.
    std::uint64_t memory_limit = 0;
    /// Unused bytes that the memory pool behind the buffers keeps when the GPU is idle; the rest is returned to the
    /// driver.
    std::uint64_t release_threshold = ~std::uint64_t(0);
    /// The maximum bytes of page-locked host memory, for pinned buffers and for copies from and to pageable memory. One
    /// eighth of it, but at least 2 MiB and at most 16 MiB, is not available to pinned buffers, so that operations that
    /// need page-locked memory themselves never wait for buffers to be released.
    std::uint64_t pinned_limit = std::uint64_t(512) << 20;
    /// The maximum number of threads for work that would block the executor: copies of pageable memory, growing pools,
    /// loading kernels. Started on first use.
    int helper_threads = 4;
    blas_mode blas = blas_mode::deterministic; ///< How cuBLAS computes.
    /// The workspace of cuBLAS, in bytes per lane.
    std::uint64_t blas_workspace = std::uint64_t(32) << 20;
    /// Marks the launch of each op with an NVTX range of its name, for profilers such as Nsight Systems. It has no
    /// effect in a build without the header of NVTX.
    bool nvtx = false;
    /// The GPU measures one of this many runs of each instance of a plan, for traces. 0: none. See
    /// trace_kind::measured.
    int timed_runs = 0;

    /// errc::invalid_option if an option is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
