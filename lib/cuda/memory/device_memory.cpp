#include "cuda/memory/device_memory.hpp"

#include "cuda/driver/error.hpp"

#include <algorithm>
#include <new>

namespace coaccel::cuda {
namespace {

// The driver rounds up to this size as well.
constexpr std::size_t granule = 512;
// Above these limits the cost of a driver call is small compared to the use of the memory.
constexpr std::size_t largest_kept = std::size_t(4) << 20;
constexpr std::uint64_t most_kept = std::uint64_t(64) << 20;
constexpr std::uint64_t most_kept_managed = std::uint64_t(256) << 20;

constexpr std::size_t rounded(std::size_t bytes) noexcept
{
    return (bytes + granule - 1) / granule * granule;
}

/// Buffers are counted exactly; the pool behind them needs extra space for its own rounding and fragmentation.
constexpr std::size_t pool_size(std::uint64_t limit) noexcept
{
    constexpr std::uint64_t unit = std::uint64_t(64) << 20;
    return limit > ~std::uint64_t(0) - 2 * unit ? 0 : (limit / unit + 2) * unit;
}

constexpr std::size_t index(memory_kind k) noexcept
{
    return static_cast<std::size_t>(k);
}

void* pointer(CUdeviceptr p) noexcept
{
    return reinterpret_cast<void*>(p);
}

} // namespace

result<CUmemoryPool> device_memory::make_pool(const driver_api& api, CUdevice device, const cuda_options& options)
{
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = device;
    if (options.memory_limit != 0)
        props.maxSize = pool_size(options.memory_limit);
    CUmemoryPool pool = nullptr;
    if (const CUresult r = api.cuMemPoolCreate(&pool, &props); r != CUDA_SUCCESS)
        return make_error(r);
    cuuint64_t threshold = options.release_threshold;
    if (const CUresult r = api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
        r != CUDA_SUCCESS) {
        (void)api.cuMemPoolDestroy(pool);
        return make_error(r);
    }
    return pool;
}

void device_memory::use(CUmemoryPool pool, CUstream growth, const cuda_options& options) noexcept
{
    pool_ = pool;
    growth_ = growth;
    limit_ = options.memory_limit;
    // The pool counts memory cached here as in use and would not release it at its threshold.
    most_spare_ = std::min(most_kept, options.release_threshold);
}

result<void*> device_memory::allocate(CUstream s, std::size_t bytes, memory_kind kind)
{
    const growth g{rounded(bytes), kind};
    const std::scoped_lock lock(mutex_);
    if (exceeds(g.bytes))
        return errc::out_of_memory;
    if (const auto found = cached_.find(g); found != cached_.end())
        return hand_out(s, g, take_out(found).mapped().memory);
    return kind == memory_kind::device ? allocate_pooled(s, g) : ask_for_more(g);
}

bool device_memory::exceeds(std::size_t bytes) const noexcept
{
    return limit_ != 0 && used_[0] + used_[1] + outside_ + shared_ + bytes > limit_;
}

bool device_memory::has_room_for(std::size_t bytes) const noexcept
{
    const std::scoped_lock lock(mutex_);
    return !exceeds(bytes);
}

bool device_memory::count(outside what, std::size_t bytes) noexcept
{
    const std::scoped_lock lock(mutex_);
    if (exceeds(bytes))
        return false;
    (what == outside::shared ? shared_ : outside_) += bytes;
    return true;
}

void device_memory::uncount(outside what, std::size_t bytes) noexcept
{
    const std::scoped_lock lock(mutex_);
    (what == outside::shared ? shared_ : outside_) -= bytes;
}

void device_memory::share(std::size_t bytes) noexcept
{
    const std::scoped_lock lock(mutex_);
    outside_ -= bytes;
    shared_ += bytes;
}

result<void*> device_memory::allocate_pooled(CUstream s, growth g)
{
    // If the pool has reserved enough, it does not ask the system for more, and the call is fast.
    if (reserved_by_pool() >= used_[index(g.kind)] + cached_bytes_[index(g.kind)] + g.bytes) {
        CUdeviceptr memory = 0;
        const CUresult r = api_.cuMemAllocFromPoolAsync(&memory, g.bytes, pool_, s);
        if (r == CUDA_SUCCESS)
            return hand_out(s, g, memory);
        // The free memory of the pool may be fragmented.
        if (r != CUDA_ERROR_OUT_OF_MEMORY)
            return make_error(r);
    }
    return ask_for_more(g);
}

result<void*> device_memory::hand_out(CUstream s, growth g, CUdeviceptr memory) noexcept
{
    try {
        live_.emplace(memory, g);
    } catch (const std::bad_alloc&) {
        // destroy() would not find this memory.
        (void)note(free(g, memory, s));
        return errc::out_of_memory;
    }
    refused_.erase(g);
    used_[index(g.kind)] += g.bytes;
    high_water_ = std::max(high_water_, used_[0] + used_[1]);
    return pointer(memory);
}

result<void*> device_memory::ask_for_more(growth g)
{
    if (const auto found = refused_.find(g); found != refused_.end()) {
        const CUresult why = found->second;
        refused_.erase(found);
        return make_error(why);
    }
    if (growing_.contains(g))
        return nullptr;
    try {
        growing_.insert(g);
        if (helpers_.run([this, g] { grow(g); }))
            return nullptr;
    } catch (const std::bad_alloc&) {
        // As if no thread could be started.
    }
    growing_.erase(g);
    return errc::out_of_memory;
}

void device_memory::grow(growth g) noexcept
{
    CUdeviceptr made = 0;
    CUresult r = obtain(g, made);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        trim();
        r = obtain(g, made);
    }
    (void)note(r);
    {
        const std::scoped_lock lock(mutex_);
        growing_.erase(g);
        if (r == CUDA_SUCCESS && !keep(g, made, wish::got)) {
            (void)note(free(g, made, growth_));
            r = CUDA_ERROR_OUT_OF_MEMORY;
        }
        try {
            if (r != CUDA_SUCCESS)
                refused_[g] = r;
        } catch (const std::bad_alloc&) {
            // The next request then asks the driver again and gets the same result.
        }
    }
    on_change_();
}

// The memory stays allocated until it is requested: back in the pool, a low release threshold might free it before
// that.
CUresult device_memory::obtain(growth g, CUdeviceptr& made) noexcept
{
    if (helpers_.context_dead())
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (g.kind == memory_kind::managed) {
        if (const CUresult r = free_surplus(); is_sticky(r))
            return r;
        return api_.cuMemAllocManaged(&made, g.bytes, CU_MEM_ATTACH_GLOBAL);
    }
    if (const CUresult r = api_.cuMemAllocFromPoolAsync(&made, g.bytes, pool_, growth_); r != CUDA_SUCCESS)
        return r;
    const CUresult r = api_.cuStreamSynchronize(growth_);
    if (r != CUDA_SUCCESS && !is_sticky(r))
        (void)free(g, made, growth_);
    return r;
}

bool device_memory::keep(growth g, CUdeviceptr memory, wish why) noexcept
{
    try {
        cached_.emplace(g, kept{memory, why});
        cached_bytes_[index(g.kind)] += g.bytes;
        spare_bytes_[index(g.kind)] += why == wish::spare ? g.bytes : 0;
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

device_memory::cache::node_type device_memory::take_out(cache::const_iterator at) noexcept
{
    const auto [g, what] = *at;
    cached_bytes_[index(g.kind)] -= g.bytes;
    spare_bytes_[index(g.kind)] -= what.why == wish::spare ? g.bytes : 0;
    return cached_.extract(at);
}

CUresult device_memory::release(CUstream s, void* memory, std::size_t bytes, memory_kind kind, last_use left) noexcept
{
    const growth g{rounded(bytes), kind};
    const auto p = reinterpret_cast<CUdeviceptr>(memory);
    {
        const std::scoped_lock lock(mutex_);
        used_[index(kind)] -= g.bytes;
        if (kind == memory_kind::managed) {
            // If it cannot be kept, it stays live, so that destroy() frees it: that may block, so not here.
            if (keep(g, p, wish::spare))
                live_.erase(p);
            have_surplus_freed();
            return CUDA_SUCCESS;
        }
        live_.erase(p);
        if (left == last_use::unused && g.bytes <= largest_kept && spare_bytes_[index(kind)] + g.bytes <= most_spare_ &&
            keep(g, p, wish::spare))
            return CUDA_SUCCESS;
        remember(s);
    }
    return api_.cuMemFreeAsync(p, s);
}

// On the thread pool, because the driver waits for the GPU before it frees managed memory.
void device_memory::have_surplus_freed() noexcept
{
    if (freeing_surplus_ || !too_much_managed())
        return;
    try {
        freeing_surplus_ = helpers_.run([this] { (void)free_surplus(); });
    } catch (const std::bad_alloc&) {
        // The next release or growth frees the surplus.
    }
}

bool device_memory::too_much_managed() const noexcept
{
    return spare_bytes_[index(memory_kind::managed)] > most_kept_managed;
}

CUresult device_memory::free_surplus() noexcept
{
    std::unique_lock lock(mutex_);
    freeing_surplus_ = false;
    if (helpers_.context_dead())
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    // Largest first: fewest driver calls.
    for (auto i = cached_.end(); too_much_managed() && i != cached_.begin();) {
        --i;
        if (i->first.kind != memory_kind::managed || i->second.why != wish::spare)
            continue;
        const auto surplus = take_out(i);
        lock.unlock();
        const CUresult r = free(surplus.key(), surplus.mapped().memory, growth_);
        lock.lock();
        if (!note(r))
            return r;
        i = cached_.end();
    }
    return CUDA_SUCCESS;
}

void device_memory::remember(CUstream s) noexcept
{
    if (std::ranges::find(freed_on_, s) != freed_on_.end())
        return;
    try {
        freed_on_.push_back(s);
    } catch (const std::bad_alloc&) {
        // A trim then misses the memory freed on this stream.
    }
}

void device_memory::free_cached() noexcept
{
    cache unwanted;
    {
        const std::scoped_lock lock(mutex_);
        cached_bytes_ = {};
        spare_bytes_ = {};
        unwanted.swap(cached_);
    }
    for (const auto& [g, what] : unwanted)
        if (!note(free(g, what.memory, growth_)))
            return;
}

/// Returns false if the context is dead; the caller must then make no further driver calls.
bool device_memory::note(CUresult r) const noexcept
{
    if (is_sticky(r))
        helpers_.context_died();
    return !helpers_.context_dead();
}

CUresult device_memory::free(growth g, CUdeviceptr memory, CUstream s) noexcept
{
    return g.kind == memory_kind::managed ? api_.cuMemFree(memory) : api_.cuMemFreeAsync(memory, s);
}

void device_memory::trim() noexcept
{
    if (helpers_.context_dead())
        return;
    free_cached();
    std::vector<CUstream> streams;
    {
        const std::scoped_lock lock(mutex_);
        streams.swap(freed_on_);
    }
    // The pool returns only memory that it knows to be free, and it learns that from a synchronization. Streams that
    // are still busy are skipped.
    bool alive = !helpers_.context_dead();
    for (auto s = streams.begin(); alive && s != streams.end(); ++s) {
        const CUresult r = api_.cuStreamQuery(*s);
        alive = note(r) && (r != CUDA_SUCCESS || note(api_.cuStreamSynchronize(*s)));
    }
    if (alive && note(api_.cuStreamSynchronize(growth_)))
        (void)note(api_.cuMemPoolTrimTo(pool_, 0));
    const std::scoped_lock lock(mutex_);
    for (CUstream s : streams)
        remember(s);
}

std::uint64_t device_memory::reserved_by_pool() const noexcept
{
    cuuint64_t bytes = 0;
    if (!pool_ || api_.cuMemPoolGetAttribute(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

void device_memory::fill(memory_info& info) const noexcept
{
    std::size_t free = 0;
    std::size_t total = 0;
    if (api_.cuMemGetInfo(&free, &total) == CUDA_SUCCESS) {
        info.free = free;
        info.total = total;
    }
    const std::scoped_lock lock(mutex_);
    constexpr std::size_t managed = index(memory_kind::managed);
    fill_use(info);
    info.reserved = reserved_by_pool() + used_[managed] + cached_bytes_[managed] + outside_;
}

void device_memory::fill_use(memory_info& info) const noexcept
{
    info.used = used_[0] + used_[1] + outside_;
    info.high_water = high_water_ + outside_;
}

memory_info device_memory::use() const noexcept
{
    const std::scoped_lock lock(mutex_);
    memory_info info;
    fill_use(info);
    return info;
}

void device_memory::destroy() noexcept
{
    free_cached();
    for (const auto& [memory, g] : live_)
        (void)free(g, memory, growth_);
    live_.clear();
    if (growth_)
        (void)api_.cuStreamSynchronize(growth_);
}

} // namespace coaccel::cuda
