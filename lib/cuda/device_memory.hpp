#ifndef COACCEL_CUDA_DEVICE_MEMORY_HPP
#define COACCEL_CUDA_DEVICE_MEMORY_HPP

#include "cuda/backstage.hpp"
#include "cuda/context_handle.hpp"

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

/// The memory behind buffers: a stream-ordered pool on the device, and managed memory that is kept for the next taker.
///
/// Asking the driver for more memory can take milliseconds, so it happens on the backstage: `allocate` then says "not
/// yet", and `on_change` is called when it is worth another try.
class device_memory {
public:
    /// Makes the pool; the context must be current.
    static result<CUmemoryPool> make_pool(const driver_api& api, CUdevice device, const cuda_options& options);

    device_memory(const driver_api& api, backstage& helpers, std::function<void()> on_change) noexcept
        : api_(api), helpers_(helpers), on_change_(std::move(on_change))
    {}
    device_memory(const device_memory&) = delete;
    device_memory& operator=(const device_memory&) = delete;

    /// A limit of 0 is what the GPU has. The pool and the stream stay the caller's.
    void use(CUmemoryPool pool, CUstream growth, const cuda_options& options) noexcept;

    result<void*> allocate(CUstream s, std::size_t bytes, memory_kind kind);
    /// Unused: nobody uses the memory any more, not even behind what is on the stream, so that the next taker can have
    /// it without a call of the driver's.
    enum class last_use : std::uint8_t { in_stream_order, unused };

    CUresult release(CUstream s, void* memory, std::size_t bytes, memory_kind kind,
                     last_use left = last_use::in_stream_order) noexcept;

    /// Gives unused memory back to the driver. Takes its time.
    void trim() noexcept;

    void fill(memory_info& info) const noexcept;
    std::uint64_t limit() const noexcept { return limit_ != 0 ? limit_ : std::numeric_limits<std::uint64_t>::max(); }
    /// Only `used` and `high_water`, without a call of the driver.
    memory_info use() const noexcept;

    /// Frees everything, also what is in buffers. The backstage has stopped and the context is healthy and idle.
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
    /// Got: by the backstage, for somebody who has yet to come. Spare: nobody is known to want it.
    enum class wish : std::uint8_t { got, spare };
    struct kept {
        CUdeviceptr memory;
        wish why;
    };
    using cache = std::multimap<growth, kept>;

    bool keep(growth g, CUdeviceptr memory, wish why) noexcept;
    /// The entry is then no longer counted.
    cache::node_type take_out(cache::const_iterator at) noexcept;
    void* hand_out(growth g, CUdeviceptr memory) noexcept;
    void have_surplus_freed() noexcept;
    bool too_much_managed() const noexcept;
    /// Frees managed memory until no more is kept than may be. Takes its time.
    CUresult free_surplus() noexcept;
    void free_cached() noexcept;
    bool note(CUresult r) const noexcept;
    CUresult free(growth g, CUdeviceptr memory) noexcept;
    void remember(CUstream s) noexcept;
    std::uint64_t reserved_by_pool() const noexcept;

    const driver_api& api_;
    backstage& helpers_;
    std::function<void()> on_change_;
    CUmemoryPool pool_ = nullptr;
    CUstream growth_ = nullptr;
    std::uint64_t limit_ = 0;

    mutable std::mutex mutex_;
    /// What the backstage is busy with, and what it could not do and nobody has been told of yet.
    std::set<growth> growing_;
    std::map<growth, CUresult> refused_;
    /// What is in buffers. Memory of a pool outlives its context, so that none may be forgotten at the end.
    boost::unordered_flat_map<CUdeviceptr, growth> live_;
    /// Memory that waits for its next taker.
    cache cached_;
    /// Streams with memory freed on them, each once.
    std::vector<CUstream> freed_on_;
    // Bytes by kind.
    std::array<std::uint64_t, 2> used_{};
    std::array<std::uint64_t, 2> cached_bytes_{};
    /// Of the cached ones, those that are spare.
    std::array<std::uint64_t, 2> spare_bytes_{};
    std::uint64_t high_water_ = 0;
    /// Of spare memory from the pool.
    std::uint64_t most_spare_ = 0;
    bool freeing_surplus_ = false;
};

} // namespace coaccel::cuda

#endif
