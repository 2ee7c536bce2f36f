#ifndef COACCEL_OPS_JIT_OCCUPANCY_HPP
#define COACCEL_OPS_JIT_OCCUPANCY_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/jit/kernel.hpp>

namespace coaccel::jit {

/// A launch shape with which a kernel fully occupies the device.
struct occupancy_info {
    /// Threads per block.
    int block_size = 0;
    /// The number of blocks that fill the device.
    int min_grid_size = 0;
    /// Blocks of this size that can be resident on one multiprocessor.
    int blocks_per_multiprocessor = 0;
};

/// Asks the device for a launch shape for a kernel; made by `occupancy`.
struct occupancy_op {
    using reply = occupancy_info;
    static constexpr std::string_view name = "jit.occupancy";
    static constexpr library lib = library::jit;

    std::uint64_t kernel = 0;       ///< The id of the kernel.
    std::uint32_t shared_bytes = 0; ///< Dynamic shared memory per block, in bytes.

    /// Errors: errc::invalid_argument for a kernel handle that is empty or whose kernel no longer exists.
    /// Exceptions: none.
    COACCEL_DECL error_code check() const;
    /// The image, which must live until the op ends.
    std::shared_ptr<const void> keep() const noexcept { return keep_image(kernel); }

    bool accepts(const reply& shape) const noexcept
    {
        return shape.block_size >= 0 && shape.min_grid_size >= 0 && shape.blocks_per_multiprocessor >= 0;
    }

    BOOST_DESCRIBE_CLASS(occupancy_op, (), (kernel, shared_bytes), (), ())
};

/// Makes an op for blocks with this much dynamic shared memory each. On the host backend a block has one thread.
inline occupancy_op occupancy(const kernel& k, std::uint32_t dynamic_shared_bytes = 0) noexcept
{
    return {k.id(), dynamic_shared_bytes};
}

} // namespace coaccel::jit

#endif
