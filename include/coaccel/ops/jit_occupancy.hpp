#ifndef COACCEL_OPS_JIT_OCCUPANCY_HPP
#define COACCEL_OPS_JIT_OCCUPANCY_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/jit_kernel.hpp>

namespace coaccel::jit {

/// A shape that keeps the device busy with a kernel.
struct occupancy_info {
    /// Threads of a block.
    int block_size = 0;
    /// Blocks that fill the device.
    int min_grid_size = 0;
    /// Blocks of this size that are resident on one multiprocessor.
    int blocks_per_multiprocessor = 0;
};

/// Asks the device how to launch a kernel; made by `occupancy`.
struct occupancy_op {
    using reply = occupancy_info;
    static constexpr std::string_view name = "jit.occupancy";
    static constexpr library lib = library::jit;

    std::uint64_t kernel = 0;       ///< The id of the kernel.
    std::uint32_t shared_bytes = 0; ///< Dynamic shared memory of a block.

    /// errc::invalid_argument for a kernel that is none or gone.
    COACCEL_DECL error_code check() const;
    /// What the op needs until its end.
    std::shared_ptr<const void> keep() const noexcept { return keep_image(kernel); }

    bool accepts(const reply& shape) const noexcept
    {
        return shape.block_size >= 0 && shape.min_grid_size >= 0 && shape.blocks_per_multiprocessor >= 0;
    }

    BOOST_DESCRIBE_CLASS(occupancy_op, (), (kernel, shared_bytes), (), ())
};

/// For blocks with this much dynamic shared memory each. On the host backend one thread makes a block.
inline occupancy_op occupancy(const kernel& k, std::uint32_t dynamic_shared_bytes = 0) noexcept
{
    return {k.id(), dynamic_shared_bytes};
}

} // namespace coaccel::jit

#endif
