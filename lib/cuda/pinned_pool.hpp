#ifndef COACCEL_CUDA_PINNED_POOL_HPP
#define COACCEL_CUDA_PINNED_POOL_HPP

#include "cuda/backstage.hpp"
#include "cuda/pinned_book.hpp"

#include <coaccel/core/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace coaccel::cuda {

/// Page-locked host memory in size classes: memory of our own, registered with the driver, so that it outlives the
/// context it was made for. Grows on the backstage, never on the caller's thread.
class pinned_pool final : public detail::pinned_memory {
public:
    pinned_pool(const driver_api& api, backstage& helpers, std::uint64_t limit);
    pinned_pool(const pinned_pool&) = delete;
    pinned_pool& operator=(const pinned_pool&) = delete;
    ~pinned_pool() override;

    /// For users, who never get the last part of the limit.
    result<void*> try_allocate(std::size_t bytes) override;
    /// For copies and results on their way, which are served in the end, whatever users hold: they let go without
    /// waiting for more of this memory. errc::out_of_memory: no more than `reserve_of` the limit at once.
    result<void*> try_allocate_own(std::size_t bytes);
    void release(void* memory) noexcept override;

    /// What is kept from users: an eighth of the limit, so that copies stay fast beside pinned buffers, but room for
    /// some chunks at least and no more than copies have a use for. Of a limit smaller than that, half.
    static std::uint64_t reserve_of(std::uint64_t limit) noexcept;

    /// Told, from any thread, when a try that failed is worth repeating. An empty one: nobody is.
    void listen(notification n) noexcept;

    /// The context is going: no call reaches the driver or the backstage any more. `alive`: it is still there, and
    /// memory nobody holds is unregistered now; what users hold stays valid and is unmapped when they let go.
    void detach(bool alive) noexcept;

    /// Gives what nobody holds back to the system. Takes its time.
    void trim() noexcept;

    std::uint64_t used() const noexcept;
    std::uint64_t reserved() const noexcept;

private:
    struct state;

    result<void*> try_allocate(std::size_t bytes, pinned_book::taker who);

    /// Shared with the jobs on the backstage.
    std::shared_ptr<state> state_;
};

} // namespace coaccel::cuda

#endif
