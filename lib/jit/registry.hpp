#ifndef COACCEL_JIT_REGISTRY_HPP
#define COACCEL_JIT_REGISTRY_HPP

#include "jit/image.hpp"

namespace coaccel::jit {

/// The errc::invalid_argument for an op whose kernel was never compiled or has no copy left.
COACCEL_DECL error_code no_kernel(std::string_view op) noexcept;

// Ops are plain data, so they refer to kernels and host functions by number. The numbers are valid within the process.

/// Assigns the image its id. find_image finds it for as long as it exists.
COACCEL_DECL std::shared_ptr<const image> register_image(std::shared_ptr<image> made);

/// What the process has compiled.
struct image_counts {
    std::uint64_t existing = 0;   ///< Images that exist now.
    std::uint64_t compiled = 0;   ///< Images that were made by a compiler, or have only a host function.
    std::uint64_t from_cache = 0; ///< Images whose code was found in a cache of an earlier compilation.
};
COACCEL_DECL image_counts count_images() noexcept;

/// Null if there is no such image, or not any more.
COACCEL_DECL std::shared_ptr<const image> find_image(std::uint64_t id) noexcept;

/// Returns the same number for the same function. Host functions are part of the program, so they are never removed,
/// and an op may call one whose kernel is destroyed.
std::uint32_t register_host_function(const host_function& f);

/// Empty for an unknown number.
COACCEL_DECL host_function find_host_function(std::uint32_t number) noexcept;

} // namespace coaccel::jit

#endif
