#include "support/fake_cuda_state.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Memory of cuMemCreate, which is mapped at reserved addresses and can be exported.
namespace test {

using state = fake_cuda::state;
using coaccel::detail::unique_fd;

namespace {

constexpr std::size_t granule = std::size_t(2) << 20;
constexpr unsigned char unwritten = 0xff;
/// Followed by the device.
constexpr std::string_view label = "fake-cuda-device-";

char* pointer(CUdeviceptr p)
{
    return reinterpret_cast<char*>(p);
}

bool is_device(const CUmemLocation& l, int devices)
{
    return l.type == CU_MEM_LOCATION_TYPE_DEVICE && l.id >= 0 && l.id < devices;
}

/// The device whose memory it is; -1 if it is not memory of a fake.
int device_of(int descriptor)
{
    std::array<char, 256> target{};
    const auto link = "/proc/self/fd/" + std::to_string(descriptor);
    if (::readlink(link.c_str(), target.data(), target.size() - 1) < 0)
        return -1;
    const std::string_view name(target.data());
    const auto at = name.find(label);
    int device = -1;
    if (at != std::string_view::npos)
        std::from_chars(name.data() + at + label.size(), name.data() + name.size(), device);
    return device;
}

} // namespace

std::map<char*, state::address_range>::iterator state::find_range(CUdeviceptr p)
{
    auto after = ranges.upper_bound(pointer(p));
    if (after == ranges.begin())
        return ranges.end();
    --after;
    return pointer(p) < after->first + after->second.bytes ? after : ranges.end();
}

bool state::check_range(const char* where, CUdeviceptr p, std::size_t bytes, bool running, use how)
{
    const auto& [start, r] = *find_range(p);
    auto complain = [&](const char* what) {
        violate(std::string(where) + ": " + what);
        return false;
    };
    if (!r.mapped)
        return complain("addresses without memory");
    if (bytes > r.bytes - static_cast<std::size_t>(pointer(p) - start))
        return complain("reaches beyond its memory");
    if (r.access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        return complain("memory without access");
    if (!running || how == use::read || r.access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return true;
    die(CUDA_ERROR_ILLEGAL_ADDRESS);
    return false;
}

std::uint64_t state::allocation_bytes() const
{
    std::set<const allocation*> all;
    for (const auto& [handle, a] : allocations)
        all.insert(a.get());
    for (const auto& [start, r] : ranges)
        if (r.mapped)
            all.insert(r.mapped.get());
    std::uint64_t sum = 0;
    for (const allocation* a : all)
        sum += a->bytes;
    return sum;
}

CUresult state::granularity(std::size_t* bytes, const CUmemAllocationProp* properties, CUmemAllocationGranularity_flags)
{
    if (!is_device(properties->location, how.devices))
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = granule;
    return CUDA_SUCCESS;
}

CUresult state::create_memory(CUmemGenericAllocationHandle* made, std::size_t bytes,
                              const CUmemAllocationProp* properties, unsigned long long)
{
    if (!is_device(properties->location, how.devices) || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0 || bytes % granule != 0) {
        violate("cuMemCreate of a size that is not a multiple of the granularity");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > free_memory())
        return CUDA_ERROR_OUT_OF_MEMORY;
    const auto name = std::string(label) + std::to_string(properties->location.id);
    unique_fd memory(::memfd_create(name.c_str(), MFD_CLOEXEC));
    if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void* const content = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (content == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(content, unwritten, bytes);
    ::munmap(content, bytes);
    *made = next_handle += 16;
    const bool exportable = properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    allocations.emplace(
        *made, std::make_shared<allocation>(allocation{std::move(memory), bytes, properties->location.id, exportable}));
    return CUDA_SUCCESS;
}

CUresult state::release_memory(CUmemGenericAllocationHandle h)
{
    if (allocations.erase(h))
        return CUDA_SUCCESS;
    violate("cuMemRelease of an unknown handle");
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult state::handle_properties(CUmemAllocationProp* properties, CUmemGenericAllocationHandle h)
{
    const auto found = allocations.find(h);
    if (found == allocations.end()) {
        violate("cuMemGetAllocationPropertiesFromHandle of an unknown handle");
        return CUDA_ERROR_INVALID_VALUE;
    }
    *properties = {};
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = found->second->device;
    return CUDA_SUCCESS;
}

CUresult state::reserve_addresses(CUdeviceptr* made, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long)
{
    if (bytes == 0 || bytes % granule != 0) {
        violate("cuMemAddressReserve of a size that is not a multiple of the granularity");
        return CUDA_ERROR_INVALID_VALUE;
    }
    void* const start = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ranges.emplace(static_cast<char*>(start), address_range{.bytes = bytes});
    *made = reinterpret_cast<CUdeviceptr>(start);
    return CUDA_SUCCESS;
}

CUresult state::free_addresses(CUdeviceptr p, std::size_t bytes)
{
    const auto found = ranges.find(pointer(p));
    if (found == ranges.end() || found->second.bytes != bytes || found->second.mapped) {
        violate("cuMemAddressFree of a range that is not reserved, or is mapped");
        return CUDA_ERROR_INVALID_VALUE;
    }
    ::munmap(found->first, bytes);
    ranges.erase(found);
    return CUDA_SUCCESS;
}

CUresult state::map_memory(CUdeviceptr p, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle h,
                           unsigned long long)
{
    const auto found = ranges.find(pointer(p));
    const auto what = allocations.find(h);
    if (found == ranges.end() || found->second.bytes != bytes || found->second.mapped || what == allocations.end() ||
        offset != 0) {
        violate("cuMemMap of an unknown handle, or at a range that is not reserved or mapped");
        return CUDA_ERROR_INVALID_VALUE;
    }
    // No misuse: the caller cannot know the size of imported memory.
    if (bytes > what->second->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (::mmap(found->first, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, what->second->memory.get(), 0) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    found->second.mapped = what->second;
    found->second.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult state::unmap_memory(CUdeviceptr p, std::size_t bytes)
{
    const auto found = ranges.find(pointer(p));
    if (found == ranges.end() || found->second.bytes != bytes || !found->second.mapped) {
        violate("cuMemUnmap of a range that is not mapped");
        return CUDA_ERROR_INVALID_VALUE;
    }
    ::mmap(found->first, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    found->second.mapped.reset();
    return CUDA_SUCCESS;
}

CUresult state::set_access(CUdeviceptr p, std::size_t bytes, const CUmemAccessDesc* how_much, std::size_t count)
{
    const auto found = ranges.find(pointer(p));
    if (found == ranges.end() || found->second.bytes != bytes || !found->second.mapped) {
        violate("cuMemSetAccess of a range that is not mapped");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (count != 1 || !is_device(how_much->location, how.devices) ||
        how_much->location.id != found->second.mapped->device) {
        violate("cuMemSetAccess for another device");
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->second.access = how_much->flags;
    const int protection = how_much->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                           : how_much->flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                                 : PROT_NONE;
    return ::mprotect(found->first, bytes, protection) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult state::export_memory(void* descriptor, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type,
                              unsigned long long)
{
    const auto found = allocations.find(h);
    if (found == allocations.end() || !found->second->exportable || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        violate("cuMemExportToShareableHandle of memory that was not made for it");
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Without close-on-exec, as the real driver's may be.
    const int made = ::dup(found->second->memory.get());
    if (made < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    std::memcpy(descriptor, &made, sizeof(made));
    return CUDA_SUCCESS;
}

CUresult state::import_memory(CUmemGenericAllocationHandle* made, void* descriptor, CUmemAllocationHandleType type)
{
    const int given = static_cast<int>(reinterpret_cast<std::uintptr_t>(descriptor));
    const int device = device_of(given);
    struct stat found = {};
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || device < 0 || ::fstat(given, &found) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    unique_fd memory(::fcntl(given, F_DUPFD_CLOEXEC, 3));
    if (!memory)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *made = next_handle += 16;
    allocations.emplace(*made, std::make_shared<allocation>(allocation{
                                   std::move(memory), static_cast<std::size_t>(found.st_size), device, false}));
    return CUDA_SUCCESS;
}

} // namespace test
