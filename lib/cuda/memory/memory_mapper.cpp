#include "cuda/memory/memory_mapper.hpp"

#include "cuda/driver/error.hpp"

#include <limits>

namespace coaccel::cuda {
namespace {

constexpr auto as_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

bool has_functions(const driver_api& api) noexcept
{
#define COACCEL_CUDA_MISSING(function)                                                                                 \
    if (!api.function)                                                                                                 \
        return false;
    COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(COACCEL_CUDA_MISSING)
#undef COACCEL_CUDA_MISSING
    return true;
}

} // namespace

CUresult memory_mapper::find_support(const driver_api& api, CUdevice device, bool& supported) noexcept
{
    supported = has_functions(api);
    for (const auto needed : {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                              CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED}) {
        int value = 0;
        if (const CUresult r = api.cuDeviceGetAttribute(&value, needed, device); r != CUDA_SUCCESS)
            return r;
        supported = supported && value != 0;
    }
    return CUDA_SUCCESS;
}

mapping_result memory_mapper::use(CUdevice device) noexcept
{
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties_.location.id = device;
    properties_.requestedHandleTypes = as_descriptor;
    return {api_.cuMemGetAllocationGranularity(&granularity_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "cuMemGetAllocationGranularity"};
}

std::size_t memory_mapper::rounded(std::size_t bytes) const noexcept
{
    if (bytes > std::numeric_limits<std::size_t>::max() - granularity_)
        return 0;
    return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

mapping_result memory_mapper::make(std::size_t bytes, mapped_memory& made) const noexcept
{
    made = {.bytes = rounded(bytes)};
    if (made.bytes == 0)
        return {CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate"};
    if (const CUresult r = api_.cuMemCreate(&made.handle, made.bytes, &properties_, 0); r != CUDA_SUCCESS)
        return {r, "cuMemCreate"};
    return map(memory_access::read_write, made);
}

mapping_result memory_mapper::import_memory(int descriptor, std::size_t bytes, memory_access access,
                                            mapped_memory& made) const noexcept
{
    made = {.bytes = rounded(bytes)};
    // The driver takes the descriptor itself in place of the pointer.
    auto* const source = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
    if (const CUresult r = api_.cuMemImportFromShareableHandle(&made.handle, source, as_descriptor); r != CUDA_SUCCESS)
        return {r, "cuMemImportFromShareableHandle"};
    if (const auto r = check_location(made); !r)
        return undo(r, made);
    if (const auto r = map(access, made); !r)
        return r;
    if (const auto r = drop_handle(made); !r)
        return undo(r, made);
    return {};
}

/// Memory of another device would be mapped too, and be slow or inaccessible.
mapping_result memory_mapper::check_location(const mapped_memory& memory) const noexcept
{
    CUmemAllocationProp found{};
    const CUresult r = api_.cuMemGetAllocationPropertiesFromHandle(&found, memory.handle);
    if (r != CUDA_SUCCESS)
        return {r, "cuMemGetAllocationPropertiesFromHandle"};
    const bool here =
        found.location.type == CU_MEM_LOCATION_TYPE_DEVICE && found.location.id == properties_.location.id;
    return {here ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "memory of another device"};
}

mapping_result memory_mapper::map(memory_access access, mapped_memory& memory) const noexcept
{
    if (const CUresult r = api_.cuMemAddressReserve(&memory.address, memory.bytes, 0, 0, 0); r != CUDA_SUCCESS) {
        memory.address = 0;
        return undo({r, "cuMemAddressReserve"}, memory);
    }
    if (const CUresult r = api_.cuMemMap(memory.address, memory.bytes, 0, memory.handle, 0); r != CUDA_SUCCESS) {
        if (!is_sticky(r))
            (void)api_.cuMemAddressFree(memory.address, memory.bytes);
        memory.address = 0;
        return undo({r, "cuMemMap"}, memory);
    }
    if (const auto r = set_access(memory, access); !r)
        return undo(r, memory);
    return {};
}

mapping_result memory_mapper::undo(mapping_result why, mapped_memory& memory) const noexcept
{
    if (!is_sticky(why.result))
        (void)release(memory);
    memory = {};
    return why;
}

mapping_result memory_mapper::set_access(const mapped_memory& memory, memory_access access) const noexcept
{
    CUmemAccessDesc how{};
    how.location = properties_.location;
    how.flags = access == memory_access::read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return {api_.cuMemSetAccess(memory.address, memory.bytes, &how, 1), "cuMemSetAccess"};
}

mapping_result memory_mapper::export_memory(const mapped_memory& memory, int& descriptor) const noexcept
{
    descriptor = -1;
    return {api_.cuMemExportToShareableHandle(&descriptor, memory.handle, as_descriptor, 0),
            "cuMemExportToShareableHandle"};
}

mapping_result memory_mapper::drop_handle(mapped_memory& memory) const noexcept
{
    if (memory.handle == 0)
        return {};
    const CUresult r = api_.cuMemRelease(memory.handle);
    memory.handle = 0;
    return {r, "cuMemRelease"};
}

mapping_result memory_mapper::release(mapped_memory& memory) const noexcept
{
    mapping_result first;
    const auto call = [&first](CUresult r, const char* function) {
        if (first && r != CUDA_SUCCESS)
            first = {r, function};
        return !is_sticky(r);
    };
    // In this order: the driver refuses to free addresses that are mapped.
    bool alive = true;
    if (memory.address != 0)
        alive = call(api_.cuMemUnmap(memory.address, memory.bytes), "cuMemUnmap") &&
                call(api_.cuMemAddressFree(memory.address, memory.bytes), "cuMemAddressFree");
    if (alive)
        if (const auto r = drop_handle(memory); !r)
            (void)call(r.result, r.function);
    memory = {};
    return first;
}

} // namespace coaccel::cuda
