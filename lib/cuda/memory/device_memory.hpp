#ifndef COACCEL_CUDA_MEMORY_DEVICE_MEMORY_HPP
#define COACCEL_CUDA_MEMORY_DEVICE_MEMORY_HPP

#include "cuda/driver/context_handle.hpp"
#include "cuda/driver/driver_threads.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/cuda/cuda_options.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace coaccel::cuda {

/// Memory for buffers: a stream-ordered pool on the device, and managed memory that is cached for reuse.
///
/// Asking the driver for more memory can take milliseconds, so it happens on the thread pool: `allocate` then returns
/// null, and `on_change` is called when it is worth another try.
class device_memory {
public:
    /// Creates the pool. Preconditions: the context is current.
    static result<CUmemoryPool> make_pool(const driver_api& api, CUdevice device, const cuda_options& options);

    device_memory(const driver_api& api, driver_threads& helpers, std::function<void()> on_change) noexcept
        : api_(api), helpers_(helpers), on_change_(std::move(on_change))
    {}
    device_memory(const device_memory&) = delete;
    device_memory& operator=(const device_memory&) = delete;

    /// A limit of 0 means all memory of the GPU. The caller keeps ownership of the pool and the stream.
    void use(CUmemoryPool pool, CUstream growth, const cuda_options& options) noexcept;

    result<void*> allocate(CUstream s, std::size_t bytes, memory_kind kind);
    /// unused: nothing uses the memory any more, not even queued work on the stream, so it can be reused without a
    /// driver call.
    enum class last_use : std::uint8_t { in_stream_order, unused };

    CUresult release(CUstream s, void* memory, std::size_t bytes, memory_kind kind,
                     last_use left = last_use::in_stream_order) noexcept;

    /// Memory from elsewhere that counts towards the limit.
    enum class outside : std::uint8_t {
        /// Used by this context alone; part of the statistics.
        own,
        /// Exists once for several contexts, so that its owner in the parent adds it to the statistics.
        shared,
    };
    bool has_room_for(std::size_t bytes) const noexcept;
    /// False: it would exceed the limit.
    [[nodiscard]] bool count(outside what, std::size_t bytes) noexcept;
    void uncount(outside what, std::size_t bytes) noexcept;
    /// Memory that was `own` is shared from now on.
    void share(std::size_t bytes) noexcept;

    /// Returns unused memory to the driver. May block.
    void trim() noexcept;

    void fill(memory_info& info) const noexcept;
    std::uint64_t limit() const noexcept { return limit_ != 0 ? limit_ : std::numeric_limits<std::uint64_t>::max(); }
    /// Fills only `used` and `high_water`, without a driver call.
    memory_info use() const noexcept;

    /// Frees all memory, including that of live buffers. Preconditions: the thread pool has stopped; the context is
    /// healthy and idle.
    void destroy() noexcept;

private:
    struct growth {
        std::size_t bytes;
        memory_kind kind;
        auto operator<=>(const growth&) const = default;
    };

    result<void*> allocate_pooled(CUstream s, growth g);
    result<void*> ask_for_more(growth g);
    void grow(growth g) noexcept;
    CUresult obtain(growth g, CUdeviceptr& made) noexcept;
    /// got: obtained on the thread pool for a request that will come again. spare: released, no request is known.
    enum class wish : std::uint8_t { got, spare };
    struct kept {
        CUdeviceptr memory;
        wish why;
    };
    using cache = std::multimap<growth, kept>;

    bool keep(growth g, CUdeviceptr memory, wish why) noexcept;
    /// Also subtracts the entry from the byte counts.
    cache::node_type take_out(cache::const_iterator at) noexcept;
    result<void*> hand_out(CUstream s, growth g, CUdeviceptr memory) noexcept;
    void have_surplus_freed() noexcept;
    bool too_much_managed() const noexcept;
    /// Frees spare managed memory down to its limit. May block.
    CUresult free_surplus() noexcept;
    void free_cached() noexcept;
    bool note(CUresult r) const noexcept;
    CUresult free(growth g, CUdeviceptr memory, CUstream s) noexcept;
    void remember(CUstream s) noexcept;
    std::uint64_t reserved_by_pool() const noexcept;
    bool exceeds(std::size_t bytes) const noexcept;
    void fill_use(memory_info& info) const noexcept;

    const driver_api& api_;
    driver_threads& helpers_;
    std::function<void()> on_change_;
    CUmemoryPool pool_ = nullptr;
    CUstream growth_ = nullptr;
    std::uint64_t limit_ = 0;

    mutable std::mutex mutex_;
    /// Growth in progress on the thread pool, and failed growth that was not reported yet.
    std::set<growth> growing_;
    std::map<growth, CUresult> refused_;
    /// Memory in buffers. Memory of a pool outlives its context, so all of it must be freed at the end.
    boost::unordered_flat_map<CUdeviceptr, growth> live_;
    /// Memory kept for reuse.
    cache cached_;
    /// Streams on which memory was freed, without duplicates.
    std::vector<CUstream> freed_on_;
    // Bytes by kind.
    std::array<std::uint64_t, 2> used_{};
    std::array<std::uint64_t, 2> cached_bytes_{};
    /// The part of cached_bytes_ that is spare.
    std::array<std::uint64_t, 2> spare_bytes_{};
    /// Without memory from elsewhere: as soon as it is shared, others add it.
    std::uint64_t high_water_ = 0;
    // Bytes from elsewhere.
    std::uint64_t outside_ = 0;
    std::uint64_t shared_ = 0;
    /// Limit for spare memory from the pool.
    std::uint64_t most_spare_ = 0;
    bool freeing_surplus_ = false;
};

} // namespace coaccel::cuda

#endif
