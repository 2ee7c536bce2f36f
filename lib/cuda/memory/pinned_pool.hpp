#ifndef COACCEL_CUDA_MEMORY_PINNED_POOL_HPP
#define COACCEL_CUDA_MEMORY_PINNED_POOL_HPP

#include "cuda/driver/driver_threads.hpp"
#include "cuda/memory/pinned_slabs.hpp"

#include <coaccel/core/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace coaccel::cuda {

/// For all contexts, and for kernels.
inline constexpr unsigned how_to_register = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

/// Page-locked host memory in size classes. It is our own memory, registered with the driver, so it outlives the
/// context it was made for. It grows on the thread pool, never on the caller's thread.
class pinned_pool final : public detail::pinned_memory {
public:
    pinned_pool(const driver_api& api, driver_threads& helpers, std::uint64_t limit);
    pinned_pool(const pinned_pool&) = delete;
    pinned_pool& operator=(const pinned_pool&) = delete;
    ~pinned_pool() override;

    /// For users, which never get the reserve (see `reserve_of`).
    result<void*> try_allocate(std::size_t bytes) override;
    /// For copies and results in flight. They always get memory in the end, whatever users hold, because they release
    /// theirs without waiting for more.
    /// Errors: errc::out_of_memory for more than `reserve_of(limit)` bytes at once.
    result<void*> try_allocate_own(std::size_t bytes);
    void release(void* memory) noexcept override;

    /// Memory that is kept for long, with a registration of its own. It does not count towards the limit, so that it
    /// cannot keep memory from copies. Both may block: call them on the thread pool.
    result<void*> allocate_to_keep(std::size_t bytes);
    void release_kept(void* memory) noexcept;

    /// The part kept from users, so that copies stay fast beside pinned buffers: an eighth of the limit, but at least
    /// some chunks and at most as much as copies can use. Half of a limit smaller than that.
    static std::uint64_t reserve_of(std::uint64_t limit) noexcept;

    /// Sets the notification sent, from any thread, when a failed try is worth repeating. An empty one removes it.
    void listen(notification n) noexcept;

    enum class context_end : std::uint8_t {
        /// The context works: all memory is unregistered.
        healthy,
        /// The driver refuses every call for the context.
        faulted,
        /// Our work in the context never ends, but other code uses the context further. All memory stays mapped: its
        /// addresses must not get new memory while they are registered.
        hung,
    };

    /// Call before the context is released: afterwards nothing here calls the driver or the thread pool. Memory held by
    /// users stays valid. Unless the context hangs, it is unmapped when they release it.
    void detach(context_end why) noexcept;

    /// Returns unused slabs to the system. May block.
    void trim() noexcept;

    std::uint64_t used() const noexcept;
    std::uint64_t reserved() const noexcept;

private:
    struct state;

    result<void*> try_allocate(std::size_t bytes, pinned_slabs::client who);

    /// Shared with the jobs on the thread pool.
    std::shared_ptr<state> state_;
};

} // namespace coaccel::cuda

#endif
