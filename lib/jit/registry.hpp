#ifndef COACCEL_JIT_REGISTRY_HPP
#define COACCEL_JIT_REGISTRY_HPP

#include "jit/image.hpp"

namespace coaccel::jit {

/// errc::invalid_argument for an op whose kernel was never compiled, or of which no copy is left.
COACCEL_DECL error_code no_kernel(std::string_view op) noexcept;

// Ops are plain data, so they name kernels and host functions by number. These are the numbers of the process.

/// Gives the image its id, by which it is found for as long as it lives.
COACCEL_DECL std::shared_ptr<const image> register_image(std::shared_ptr<image> made);

/// Null for an image that never was or is gone.
COACCEL_DECL std::shared_ptr<const image> find_image(std::uint64_t id) noexcept;

/// The same number for the same function. Host functions are part of the program, so they are never taken off again,
/// and an op may call one whose kernel is gone.
std::uint32_t register_host_function(const host_function& f);

/// An empty one for a number that was never given.
COACCEL_DECL host_function find_host_function(std::uint32_t number) noexcept;

} // namespace coaccel::jit

#endif
