#ifndef COACCEL_CUDA_CUDA_OPTIONS_HPP
#define COACCEL_CUDA_CUDA_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <cstdint>

namespace coaccel {

/// Whether blas::* gives the same bits each time.
enum class blas_mode : std::uint8_t {
    /// The same bits for the same input on the same GPU and library.
    deterministic,
    /// cuBLAS may use atomic additions where they are faster.
    fast,
};

/// How an NVIDIA GPU is used.
struct cuda_options {
    /// The most bytes of buffers and of the workspace of cuBLAS; 0: what the GPU has.
    std::uint64_t memory_limit = 0;
    /// How many unused bytes the pool behind the buffers keeps when the GPU is idle; the rest goes back to the
    /// driver.
    std::uint64_t release_threshold = ~std::uint64_t(0);
    /// The most bytes of page-locked host memory: for pinned buffers, and for the copies from and to ordinary memory.
    /// An eighth of it, but 2 MiB at least and 16 MiB at most, is out of the reach of pinned buffers, so that
    /// operations that need some for themselves never wait for buffers to be released.
    std::uint64_t pinned_limit = std::uint64_t(512) << 20;
    /// Threads, at most, for what would block the executor: copies of ordinary memory, growing pools,
    /// loading kernels. Started when first needed.
    int helper_threads = 4;
    blas_mode blas = blas_mode::deterministic; ///< How cuBLAS computes.
    /// Memory cuBLAS may use for itself, per lane.
    std::uint64_t blas_workspace = std::uint64_t(32) << 20;

    /// errc::invalid_option when something is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
