#ifndef COACCEL_CUDA_LIBRARIES_HPP
#define COACCEL_CUDA_LIBRARIES_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace coaccel::cuda {

/// The libraries that the CUDA backend opens at run time, each on first use.
enum class vendor_library : std::uint8_t {
    /// libcuda.so.1; without it there is no GPU. Environment variable COACCEL_LIBCUDA.
    driver,
    /// For blas::*. Environment variable COACCEL_LIBCUBLAS.
    cublas,
    /// For async_compile and prim::*. Environment variable COACCEL_LIBNVRTC.
    nvrtc,
    /// For rand::*. Environment variable COACCEL_LIBCURAND.
    curand,
    /// For blas::matmul and its relatives. Environment variable COACCEL_LIBCUBLASLT.
    cublaslt,
};

/// The name of the library, such as "libcublas"; "unknown" for another value.
COACCEL_DECL std::string_view to_string(vendor_library l) noexcept;

/// Sets the file to open for a library; it is tried before all other locations. These are, in order: the environment
/// variable, the loader's own path, the toolkit's folders, the folders of Python wheels.
///
/// Takes effect at the next search for the library; a library that is already open stays open. An empty path removes
/// the setting.
///
/// Exceptions: std::bad_alloc; the setting then stays as it was.
/// Thread safety: any thread.
COACCEL_DECL void use_library(vendor_library l, std::string path);

} // namespace coaccel::cuda

#endif
