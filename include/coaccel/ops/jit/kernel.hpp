#ifndef COACCEL_OPS_JIT_KERNEL_HPP
#define COACCEL_OPS_JIT_KERNEL_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace coaccel::jit {

struct image;

/// A compiled kernel: a shared handle, cheap to copy.
///
/// Exceptions: parameters() throws std::bad_alloc when there is no memory. Other functions do not throw.
/// Lifetimes: an op that launches the kernel contains only its id. The op keeps the code alive once it is given to a
/// device; until then a copy of the kernel must exist.
/// Thread safety: each thread may use its own copy.
class COACCEL_DECL kernel {
public:
    /// An empty handle; launching it is errc::invalid_argument.
    kernel() noexcept = default;
    /// Made by async_compile.
    explicit kernel(std::shared_ptr<const image> made) noexcept : image_(std::move(made)) {}

    explicit operator bool() const noexcept { return image_ != nullptr; }

    /// The name passed to compile_options.
    const std::string& name() const noexcept;

    /// The C++ types of its parameters; empty when `knows_parameters` is false.
    std::vector<std::string> parameters() const;

    /// False for an extern "C" kernel without a host function: its arguments are then checked only by number and size,
    /// at the first launch.
    bool knows_parameters() const noexcept;

    /// The compiler log: warnings, or the reason why there is only a host function.
    const std::string& log() const noexcept;

    bool from_cache() const noexcept; ///< Whether it was loaded from the disk cache.

    /// Unique within the process; 0 for an empty handle.
    std::uint64_t id() const noexcept;

    /// The compiled image.
    const std::shared_ptr<const image>& native() const noexcept { return image_; }

private:
    std::shared_ptr<const image> image_;
};

/// The image of the kernel with this id; null when it no longer exists.
COACCEL_DECL std::shared_ptr<const void> keep_image(std::uint64_t id) noexcept;

} // namespace coaccel::jit

#endif
