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
/// Lifetimes: an op that launches it carries its id only. It keeps the code from the moment it is given to a device;
/// until then a copy of the kernel must live. Thread safety: any thread may use a copy of its own.
class COACCEL_DECL kernel {
public:
    /// None; launching it is errc::invalid_argument.
    kernel() noexcept = default;
    /// Made by async_compile.
    explicit kernel(std::shared_ptr<const image> made) noexcept : image_(std::move(made)) {}

    explicit operator bool() const noexcept { return image_ != nullptr; }

    /// As it was asked for.
    const std::string& name() const noexcept;

    /// The C++ types of its parameters; empty when `knows_parameters` is false.
    std::vector<std::string> parameters() const;

    /// False for an extern "C" kernel without a host function: its arguments are then checked by number and size only,
    /// when it is first launched.
    bool knows_parameters() const noexcept;

    /// What the compiler had to say: warnings, or why there is a host function only.
    const std::string& log() const noexcept;

    bool from_cache() const noexcept; ///< Whether it was found on disk.

    /// Unique within the process; 0 for none.
    std::uint64_t id() const noexcept;

    /// What it is a handle of.
    const std::shared_ptr<const image>& native() const noexcept { return image_; }

private:
    std::shared_ptr<const image> image_;
};

/// What is behind the kernel of this id; null when it is gone.
COACCEL_DECL std::shared_ptr<const void> keep_image(std::uint64_t id) noexcept;

} // namespace coaccel::jit

#endif
