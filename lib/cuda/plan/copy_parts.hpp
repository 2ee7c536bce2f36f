#ifndef COACCEL_CUDA_PLAN_COPY_PARTS_HPP
#define COACCEL_CUDA_PLAN_COPY_PARTS_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/plan/detail/plan_data.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace coaccel::cuda {

/// Where the next slot can begin.
constexpr std::uint64_t next_slot(std::uint64_t offset) noexcept
{
    return (offset + detail::slot_alignment - 1) / detail::slot_alignment * detail::slot_alignment;
}

/// Memory that the device copies. The copy kernel reads these structs.
struct copy_part {
    CUdeviceptr to = 0;
    CUdeviceptr from = 0;
    std::uint64_t bytes = 0;

    bool operator==(const copy_part&) const = default;
};

/// An argument of a run that the device reads or writes where the caller has it.
struct direct_argument {
    /// In the memory of the instance.
    detail::byte_range where;
    CUdeviceptr host = 0;
};

/// At most this many of a run's inputs, and of its outputs. Further ones are staged.
inline constexpr std::size_t most_direct_arguments = 7;

/// What one launch of the copy kernel copies.
struct copy_parts {
    std::array<copy_part, 2 * most_direct_arguments + 1> all;
    std::uint32_t count = 0;

    bool operator==(const copy_parts&) const = default;
    std::span<const copy_part> used() const noexcept { return {all.data(), count}; }
    /// The largest of them.
    std::uint64_t most_bytes() const noexcept;
};

enum class copy_direction : std::uint8_t { to_device, to_host };

/// The arguments of one direction: a range in the memory of the instance, and the pinned memory for it.
struct argument_range {
    copy_direction way = copy_direction::to_device;
    CUdeviceptr instance = 0;
    detail::byte_range where;
    CUdeviceptr staged = 0;
};

/// The parts for a range of which `direct` are not staged. These are within the range, do not overlap, and are sorted
/// by this function.
copy_parts make_copy_parts(const argument_range& r, std::span<direct_argument> direct) noexcept;

} // namespace coaccel::cuda

#endif
