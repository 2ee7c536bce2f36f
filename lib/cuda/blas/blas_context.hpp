#ifndef COACCEL_CUDA_BLAS_BLAS_CONTEXT_HPP
#define COACCEL_CUDA_BLAS_BLAS_CONTEXT_HPP

#include "context/library_resources.hpp"
#include "cuda/blas/address_kernel.hpp"
#include "cuda/blas/tuned_algorithms.hpp"

#include <coaccel/ops/jit/compile.hpp>

#include <cstdint>

namespace coaccel::cuda {

/// What the lanes of a context share for the ops of `blas`.
class blas_context final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::blas;
    /// Of the folder with the files of algorithms, which is that of compiled kernels.
    static constexpr std::uint64_t files_limit = jit::compile_options::default_cache_limit;

    void destroy() noexcept override { addresses.destroy(); }
    std::size_t count() const noexcept override { return 0; }

    address_kernel addresses;
    tuned_algorithms tuned{disk_cache(disk_cache::default_folder(), files_limit)};
};

} // namespace coaccel::cuda

#endif
