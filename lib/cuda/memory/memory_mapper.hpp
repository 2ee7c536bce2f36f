#ifndef COACCEL_CUDA_MEMORY_MEMORY_MAPPER_HPP
#define COACCEL_CUDA_MEMORY_MEMORY_MAPPER_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/backend.hpp>

#include <cstddef>
#include <cstdint>

namespace coaccel::cuda {

/// Memory of a device at an address range of its own. Plain data: after the death of the context no call releases it,
/// and the end of the process does.
struct mapped_memory {
    CUdeviceptr address = 0;
    /// A multiple of the granularity.
    std::size_t bytes = 0;
    /// Needed to export the memory. Zero: there is none, and the mapping alone keeps the memory.
    CUmemGenericAllocationHandle handle = 0;
};

/// The result of several driver calls: that of the first one that failed, with its name.
struct mapping_result {
    CUresult result = CUDA_SUCCESS;
    const char* function = nullptr;

    explicit operator bool() const noexcept { return result == CUDA_SUCCESS; }
};

/// The driver calls that make, map, export and import memory. What a failed function has made is released, unless the
/// error is sticky. Preconditions: the context of the device is current.
class memory_mapper {
public:
    /// Finds out whether the driver and the device can export memory as a descriptor. Needs no context.
    static CUresult find_support(const driver_api& api, CUdevice device, bool& supported) noexcept;

    explicit memory_mapper(const driver_api& api) noexcept : api_(api) {}

    /// Call first. Preconditions: supported.
    mapping_result use(CUdevice device) noexcept;

    /// The size of memory for so many bytes; 0: there is no such size.
    std::size_t rounded(std::size_t bytes) const noexcept;

    /// New memory, which the device can write.
    mapping_result make(std::size_t bytes, mapped_memory& made) const noexcept;

    /// A descriptor of memory with a handle. The descriptor keeps the memory too.
    mapping_result export_memory(const mapped_memory& memory, int& descriptor) const noexcept;

    /// Maps memory of a descriptor, which the caller still has to close.
    mapping_result import_memory(int descriptor, std::size_t bytes, memory_access access,
                                 mapped_memory& made) const noexcept;

    mapping_result set_access(const mapped_memory& memory, memory_access access) const noexcept;
    mapping_result drop_handle(mapped_memory& memory) const noexcept;

    /// Preconditions: no work uses the memory.
    mapping_result release(mapped_memory& memory) const noexcept;

private:
    mapping_result map(memory_access access, mapped_memory& memory) const noexcept;
    mapping_result check_location(const mapped_memory& memory) const noexcept;
    /// Releases what there is of the memory, and returns the reason for it.
    mapping_result undo(mapping_result why, mapped_memory& memory) const noexcept;

    const driver_api& api_;
    CUmemAllocationProp properties_{};
    std::size_t granularity_ = 0;
};

} // namespace coaccel::cuda

#endif
