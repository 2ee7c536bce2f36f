#include "cuda/plan/copy_parts.hpp"
#include "support/fake_cuda_state.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace test {

using state = fake_cuda::state;

namespace {

constexpr std::size_t alignment = 512;
constexpr unsigned char fence = 0xfe;
constexpr unsigned char unwritten = 0xff;
constexpr unsigned char poison = 0xdd;
constexpr std::uint64_t granule = std::uint64_t(2) << 20;
constexpr std::size_t most_buried = std::size_t(64) << 20;

std::size_t rounded(std::size_t bytes, std::size_t to)
{
    return (bytes + to - 1) / to * to;
}

CUdeviceptr address(const void* p)
{
    return reinterpret_cast<CUdeviceptr>(p);
}

char* pointer(CUdeviceptr p)
{
    return reinterpret_cast<char*>(p);
}

} // namespace

char* state::make_block(std::size_t bytes, std::shared_ptr<pool> from)
{
    auto* memory = static_cast<char*>(std::aligned_alloc(alignment, rounded(bytes, alignment) + 2 * alignment));
    if (!memory)
        return nullptr;
    std::memset(memory, fence, alignment);
    std::memset(memory + alignment + bytes, fence, rounded(bytes, alignment) + alignment - bytes);
    blocks.emplace(memory + alignment,
                   block{.memory = memory, .bytes = bytes, .from = std::move(from), .context = current()});
    return memory + alignment;
}

void state::give_life(const char* start)
{
    const auto found = blocks.find(start);
    if (found == blocks.end() || found->second.freed)
        return violate("memory was freed before its allocation took effect");
    std::memset(found->second.memory + alignment, unwritten, found->second.bytes);
    found->second.live = true;
}

void state::bury(const char* start, const char* where)
{
    block& b = blocks.at(start);
    const std::size_t end = rounded(b.bytes, alignment) + 2 * alignment;
    auto torn = [&](std::size_t from, std::size_t to) {
        return std::any_of(b.memory + from, b.memory + to,
                           [](char c) { return static_cast<unsigned char>(c) != fence; });
    };
    if (torn(0, alignment) || torn(alignment + b.bytes, end))
        violate(std::string(where) + ": something wrote beyond the memory that is freed");
    std::memset(b.memory + alignment, poison, b.bytes);
    b.condemned = b.freed = true;
    buried.push_back(start);
    buried_bytes += b.bytes;
    // The most recently freed blocks are kept for a while, so that late accesses are detected.
    while (buried_bytes > most_buried && buried.size() > 1) {
        const auto oldest = blocks.find(buried.front());
        buried.pop_front();
        buried_bytes -= oldest->second.bytes;
        std::free(oldest->second.memory);
        blocks.erase(oldest);
    }
}

state::block* state::find_block(const void* p)
{
    auto after = blocks.upper_bound(static_cast<const char*>(p));
    if (after == blocks.begin())
        return nullptr;
    auto& [start, b] = *std::prev(after);
    return static_cast<const char*>(p) < start + std::max<std::size_t>(b.bytes, 1) ? &b : nullptr;
}

bool state::check_device(const char* where, CUdeviceptr p, std::size_t bytes, bool running, use how)
{
    if (find_range(p) != ranges.end())
        return check_range(where, p, bytes, running, how);
    auto complain = [&](const char* what) {
        violate(std::string(where) + ": " + what);
        return false;
    };
    const block* b = find_block(pointer(p));
    if (!b)
        return complain("not memory of the device");
    if (bytes > b->bytes - static_cast<std::size_t>(pointer(p) - (b->memory + alignment)))
        return complain("reaches beyond its memory");
    if (b->freed || (b->condemned && !running))
        return complain("memory that was freed");
    if (!b->live && running)
        return complain("memory before its allocation has taken effect");
    return true;
}

bool state::check_host(const char* where, const void* p, std::size_t bytes)
{
    if (const block* b = find_block(p); b && !b->from)
        return check_device(where, address(p), bytes, true);
    auto after = registrations.upper_bound(static_cast<const char*>(p));
    if (after != registrations.begin()) {
        const auto& [start, r] = *std::prev(after);
        if (static_cast<const char*>(p) + bytes <= start + r.bytes)
            return true;
    }
    violate(std::string(where) + ": host memory that is not page-locked");
    return false;
}

std::uint64_t state::free_memory() const
{
    std::uint64_t held = managed_bytes + allocation_bytes();
    for (const auto& [handle, p] : pools)
        held += p->reserved;
    return held > how.total_memory ? 0 : how.total_memory - held;
}

void state::trim(pool& p, std::uint64_t keep)
{
    p.reserved = std::min<std::uint64_t>(p.reserved, std::max<std::uint64_t>(keep, rounded(p.used, granule)));
}

CUresult state::memory_info(std::size_t* free, std::size_t* total)
{
    *free = free_memory();
    *total = how.total_memory;
    return CUDA_SUCCESS;
}

CUresult state::pool_create(CUmemoryPool* made, const CUmemPoolProps* properties)
{
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id < 0 ||
        properties->location.id >= how.devices || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *made = make_handle<CUmemoryPool>();
    auto p = std::make_shared<pool>();
    p->limit = properties->maxSize;
    pools.emplace(*made, std::move(p));
    return CUDA_SUCCESS;
}

CUresult state::pool_destroy(CUmemoryPool p)
{
    if (pools.erase(p))
        return CUDA_SUCCESS;
    violate("cuMemPoolDestroy of an unknown pool");
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult state::pool_trim(CUmemoryPool p, std::size_t keep)
{
    const auto found = pools.find(p);
    if (found == pools.end()) {
        violate("cuMemPoolTrimTo of an unknown pool");
        return CUDA_ERROR_INVALID_VALUE;
    }
    trim(*found->second, keep);
    return CUDA_SUCCESS;
}

CUresult state::pool_set(CUmemoryPool p, CUmemPool_attribute a, void* value)
{
    const auto found = pools.find(p);
    if (found == pools.end()) {
        violate("cuMemPoolSetAttribute of an unknown pool");
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto& at = *found->second;
    switch (a) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: at.threshold = *static_cast<cuuint64_t*>(value); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: at.reserved_high = at.reserved; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: at.used_high = at.used; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult state::pool_get(CUmemoryPool p, CUmemPool_attribute a, void* value)
{
    const auto found = pools.find(p);
    if (found == pools.end()) {
        violate("cuMemPoolGetAttribute of an unknown pool");
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto& at = *found->second;
    auto answer = [&](std::uint64_t v) {
        *static_cast<cuuint64_t*>(value) = v;
        return CUDA_SUCCESS;
    };
    switch (a) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return answer(at.threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return answer(at.reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return answer(at.reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return answer(at.used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return answer(at.used_high);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult state::allocate_async(CUdeviceptr* made, std::size_t bytes, CUmemoryPool p, CUstream s)
{
    auto* found = find_stream(s, "cuMemAllocFromPoolAsync");
    const auto where = pools.find(p);
    if (!found || where == pools.end() || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (found->capture)
        violate("cuMemAllocFromPoolAsync in a capture");
    if (const CUresult r = found->capture ? check_not_captured(*found) : check_captures(); r != CUDA_SUCCESS)
        return r;
    const auto from = where->second;
    const std::uint64_t need = from->used + rounded(bytes, alignment);
    if (from->limit && need > from->limit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (need > from->reserved) {
        const std::uint64_t more = need - from->reserved;
        if (more > free_memory())
            return CUDA_ERROR_OUT_OF_MEMORY;
        from->reserved += std::min<std::uint64_t>(rounded(more, granule), free_memory());
    }
    char* memory = make_block(bytes, from);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    from->used = need;
    from->used_high = std::max(from->used_high, from->used);
    from->reserved_high = std::max(from->reserved_high, from->reserved);
    *made = address(memory);
    return push(*found, [this, memory] { give_life(memory); });
}

CUresult state::free_async(CUdeviceptr p, CUstream s)
{
    auto* found = find_stream(s, "cuMemFreeAsync");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (found->capture)
        violate("cuMemFreeAsync in a capture");
    if (const CUresult r = found->capture ? check_not_captured(*found) : check_captures(); r != CUDA_SUCCESS)
        return r;
    const auto b = blocks.find(pointer(p));
    if (b == blocks.end() || !b->second.from || b->second.condemned) {
        violate("cuMemFreeAsync of memory that is not there or was freed");
        return CUDA_ERROR_INVALID_VALUE;
    }
    b->second.condemned = true;
    // The driver counts the memory as free as soon as the call is made, because it can be reused in stream order.
    b->second.from->used -= rounded(b->second.bytes, alignment);
    return push(*found, [this, memory = b->first] { bury(memory, "cuMemFreeAsync"); });
}

CUresult state::allocate_managed(CUdeviceptr* made, std::size_t bytes, unsigned flags)
{
    if (bytes == 0 || flags != CU_MEM_ATTACH_GLOBAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > free_memory())
        return CUDA_ERROR_OUT_OF_MEMORY;
    char* memory = make_block(bytes, nullptr);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    managed_bytes += bytes;
    give_life(memory);
    *made = address(memory);
    return CUDA_SUCCESS;
}

CUresult state::free(CUdeviceptr p)
{
    const auto b = blocks.find(pointer(p));
    if (b == blocks.end() || b->second.from || b->second.condemned) {
        violate("cuMemFree of memory that is not there or was freed");
        return CUDA_ERROR_INVALID_VALUE;
    }
    b->second.condemned = true;
    // The real driver waits for the device too.
    if (const CUresult r =
            block_until([&] { return std::ranges::all_of(streams, [&](auto& s) { return idle(*s.second); }); });
        r != CUDA_SUCCESS)
        return r;
    managed_bytes -= b->second.bytes;
    bury(b->first, "cuMemFree");
    return CUDA_SUCCESS;
}

CUresult state::host_register(void* p, std::size_t bytes, unsigned)
{
    if (!p || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const auto* start = static_cast<const char*>(p);
    for (const auto& [at, r] : registrations)
        if (start < at + r.bytes && at < start + bytes)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    registrations.emplace(start, registration{bytes, current()});
    return CUDA_SUCCESS;
}

CUresult state::host_unregister(void* p)
{
    if (registrations.erase(static_cast<const char*>(p)))
        return CUDA_SUCCESS;
    violate("cuMemHostUnregister of memory that is not registered");
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult state::pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr p)
{
    const block* b = find_block(pointer(p));
    if (b && b->freed)
        b = nullptr;
    block mapped;
    if (const auto range = find_range(p); range != ranges.end() && range->second.mapped) {
        mapped = {.memory = range->first - alignment, .bytes = range->second.bytes, .from = std::make_shared<pool>()};
        b = &mapped;
    }
    auto after = registrations.upper_bound(pointer(p));
    const char* pinned = nullptr;
    std::size_t pinned_bytes = 0;
    CUcontext owner = b ? b->context : nullptr;
    if (after != registrations.begin() && pointer(p) < std::prev(after)->first + std::prev(after)->second.bytes) {
        pinned = std::prev(after)->first;
        pinned_bytes = std::prev(after)->second.bytes;
        owner = std::prev(after)->second.context;
    }
    const auto gpu = std::ranges::find(primaries, owner, [](const auto& each) { return each.second.handle; });
    const int ordinal = gpu != primaries.end() ? static_cast<int>(gpu->first) : 0;
    // Unknown pointers yield zeros and success, as in the real driver.
    for (unsigned i = 0; i < count; ++i) {
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<unsigned*>(data[i]) = b ? CU_MEMORYTYPE_DEVICE : pinned ? CU_MEMORYTYPE_HOST : 0;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(data[i]) = b && !b->from; break;
        case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned*>(data[i]) = b || pinned; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data[i]) = b || pinned ? ordinal : -2; break;
        // As with the real driver, memory of a pool has no context.
        case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(data[i]) = b && b->from ? nullptr : owner; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(data[i]) = b || pinned ? p : 0; break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            *static_cast<void**>(data[i]) = pinned || (b && !b->from) ? pointer(p) : nullptr;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(data[i]) = b ? address(b->memory + alignment) : address(pinned);
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<std::size_t*>(data[i]) = b ? b->bytes : pinned_bytes; break;
        default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult state::copy_to_device(CUdeviceptr to, const void* from, std::size_t bytes, CUstream s)
{
    constexpr auto where = "cuMemcpyHtoDAsync";
    auto* found = find_stream(s, where);
    if (!found || !check_host(where, from, bytes) || !check_device(where, to, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return push(*found, [=, this] {
        if (check_host(where, from, bytes) && check_device(where, to, bytes, true, use::write))
            std::memcpy(pointer(to), from, bytes);
    });
}

CUresult state::copy_to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream s)
{
    constexpr auto where = "cuMemcpyDtoHAsync";
    auto* found = find_stream(s, where);
    if (!found || !check_host(where, to, bytes) || !check_device(where, from, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return push(*found, [=, this] {
        if (check_host(where, to, bytes) && check_device(where, from, bytes, true))
            std::memcpy(to, pointer(from), bytes);
    });
}

CUresult state::copy_on_device(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream s)
{
    constexpr auto where = "cuMemcpyDtoDAsync";
    auto* found = find_stream(s, where);
    if (!found || !check_device(where, to, bytes, false) || !check_device(where, from, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return push(*found, [=, this] {
        if (check_device(where, to, bytes, true, use::write) && check_device(where, from, bytes, true))
            std::memmove(pointer(to), pointer(from), bytes);
    });
}

// What the PTX of cuda/plan/copy_kernels.cpp does.
void state::add_copy_kernel()
{
    using coaccel::cuda::copy_part;
    using coaccel::cuda::copy_parts;
    constexpr auto where = "coaccel_copy_arguments";
    const auto run = [this](const launch& how, void** arguments) {
        const auto* parts = static_cast<const copy_part*>(arguments[0]);
        const std::scoped_lock lock(mutex);
        for (unsigned i = 0; i < how.grid[1]; ++i) {
            const copy_part part = parts[i];
            if (part.to % 16 != 0 || part.from % 16 != 0)
                violate("coaccel_copy_arguments: memory that is not aligned");
            const auto usable = [&](CUdeviceptr p) {
                return find_block(pointer(p)) ? check_device(where, p, part.bytes, true)
                                              : check_host(where, pointer(p), part.bytes);
            };
            if (how.block[0] == 256 && usable(part.to) && usable(part.from))
                std::memcpy(pointer(part.to), pointer(part.from),
                            std::min<std::uint64_t>(part.bytes, how.grid[0] * 256ull * 16));
        }
    };
    kernels[where] = {run, {sizeof(copy_parts::all)}};

    constexpr auto telling = "coaccel_copy_and_tell";
    const auto copy_and_tell = [this](const launch& how, void** arguments) {
        const auto at = [&](int i) { return *static_cast<const CUdeviceptr*>(arguments[i]); };
        const copy_part part{at(0), at(1), at(2)};
        auto* const word = reinterpret_cast<std::uint32_t*>(pointer(at(3)));
        const std::scoped_lock lock(mutex);
        if (part.to % 16 != 0 || part.from % 16 != 0)
            violate("coaccel_copy_and_tell: memory that is not aligned");
        if (how.grid[0] != 1 || how.grid[1] != 1 || how.block[0] % 32 != 0 || how.block[0] > 1024)
            violate("coaccel_copy_and_tell: not one block");
        if (!check_host(telling, pointer(part.to), part.bytes) || !check_device(telling, part.from, part.bytes, true) ||
            !check_host(telling, word, sizeof(*word)))
            return;
        std::memcpy(pointer(part.to), pointer(part.from), part.bytes);
        std::atomic_ref(*word).store(1, std::memory_order_release);
    };
    kernels[telling] = {copy_and_tell, {8, 8, 8, 8}};
}

template <class T>
CUresult state::set(const char* where, CUdeviceptr to, T value, std::size_t count, CUstream s)
{
    auto* found = find_stream(s, where);
    if (!found || to % sizeof(T) != 0 || !check_device(where, to, count * sizeof(T), false))
        return CUDA_ERROR_INVALID_VALUE;
    return push(*found, [=, this] {
        if (check_device(where, to, count * sizeof(T), true, use::write))
            std::fill_n(reinterpret_cast<T*>(to), count, value);
    });
}

CUresult state::set8(CUdeviceptr to, unsigned char value, std::size_t count, CUstream s)
{
    return set("cuMemsetD8Async", to, value, count, s);
}

CUresult state::set16(CUdeviceptr to, unsigned short value, std::size_t count, CUstream s)
{
    return set("cuMemsetD16Async", to, value, count, s);
}

CUresult state::set32(CUdeviceptr to, unsigned value, std::size_t count, CUstream s)
{
    return set("cuMemsetD32Async", to, value, count, s);
}

CUresult state::set32_rows(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                           CUstream s)
{
    constexpr auto where = "cuMemsetD2D32Async";
    auto* found = find_stream(s, where);
    if (!found || to % sizeof(unsigned) != 0 || pitch % sizeof(unsigned) != 0 || pitch < width * sizeof(unsigned))
        return CUDA_ERROR_INVALID_VALUE;
    const std::size_t bytes = height == 0 ? 0 : (height - 1) * pitch + width * sizeof(unsigned);
    if (!check_device(where, to, bytes, false))
        return CUDA_ERROR_INVALID_VALUE;
    return push(*found, [=, this] {
        if (check_device(where, to, bytes, true, use::write))
            for (std::size_t row = 0; row < height; ++row)
                std::fill_n(reinterpret_cast<unsigned*>(to + row * pitch), width, value);
    });
}

bool state::no_managed(const char* where, CUdeviceptr p, std::size_t bytes)
{
    const block* b = find_block(pointer(p));
    return !check_device(where, p, bytes, true) || b->from;
}

CUresult state::prefetch(CUdeviceptr p, std::size_t bytes, CUmemLocation, unsigned, CUstream s)
{
    auto* found = find_stream(s, "cuMemPrefetchAsync");
    if (!found || no_managed("cuMemPrefetchAsync", p, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = check_not_captured(*found); r != CUDA_SUCCESS)
        return r;
    return push(*found, [=, this] { (void)check_device("cuMemPrefetchAsync", p, bytes, true); });
}

CUresult state::advise(CUdeviceptr p, std::size_t bytes, CUmem_advise, CUmemLocation)
{
    return no_managed("cuMemAdvise", p, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

} // namespace test
