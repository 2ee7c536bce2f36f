#ifndef COACCEL_CUDA_LIBRARIES_HPP
#define COACCEL_CUDA_LIBRARIES_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace coaccel::cuda {

/// What the CUDA backend opens at run time, each when it is first needed.
enum class vendor_library : std::uint8_t {
    /// libcuda.so.1; without it there is no GPU. Environment variable COACCEL_LIBCUDA.
    driver,
    /// For blas::*. Environment variable COACCEL_LIBCUBLAS.
    cublas,
    /// For async_compile. Environment variable COACCEL_LIBNVRTC.
    nvrtc,
};

inline constexpr std::size_t vendor_library_count = 3;

COACCEL_DECL std::string_view name(vendor_library l) noexcept;

/// Says which file to open for a library, before anything else is tried. Without it the order is: the environment
/// variable, the loader's own path, the toolkit's folders, the folders of Python wheels.
///
/// Takes effect when the library is next looked for; one that is already open stays. An empty path takes it back.
/// Thread safety: any thread.
COACCEL_DECL void use_library(vendor_library l, std::string path);

} // namespace coaccel::cuda

#endif
