#ifndef COACCEL_HOST_MEMORY_POOL_HPP
#define COACCEL_HOST_MEMORY_POOL_HPP

#include "host/size_class.hpp"

#include <coaccel/core/backend.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <mutex>

namespace coaccel::host {

/// Aligned memory with a limit. Blocks have size classes. Released blocks are kept for later allocations of their
/// class; the number kept follows the recent peak use. Kept blocks are freed when an allocation needs the memory.
class memory_pool {
public:
    /// A limit of 0 means the memory this process may use.
    explicit memory_pool(std::uint64_t limit);
    memory_pool(const memory_pool&) = delete;
    memory_pool& operator=(const memory_pool&) = delete;
    ~memory_pool();

    result<void*> allocate(std::size_t bytes);
    void release(void* memory) noexcept;

    /// Memory that does not come from this pool but counts towards its limit.
    enum class outside : std::uint8_t {
        /// Of this process alone: part of memory_info::used.
        own,
        /// Shared with other processes; the parent counts it.
        shared,
    };
    /// False: the limit would be exceeded.
    [[nodiscard]] bool count(outside what, std::size_t bytes) noexcept;
    void uncount(outside what, std::size_t bytes) noexcept;
    /// Memory that was `own` is shared from now on.
    void share(std::size_t bytes) noexcept;

    /// Returns the kept blocks to the system.
    void trim() noexcept;
    memory_info info() const noexcept;

private:
    using hook = boost::intrusive::list_member_hook<>;

    /// Header before the memory of each block, as wide as the alignment, so that allocation and release need no lookup
    /// table.
    struct alignas(64) block {
        /// Links the block into the list of blocks in use, or into the list of kept blocks in the order of their
        /// release.
        hook by_age;
        /// Links the block into the list of kept blocks of its class.
        hook by_class;
        std::uint32_t index = 0;
        /// The size of the class, without this header.
        std::size_t bytes = 0;
        /// The requested size, rounded up to a granule.
        std::size_t used = 0;
    };

    using age_list = boost::intrusive::list<block, boost::intrusive::member_hook<block, hook, &block::by_age>>;
    using class_list = boost::intrusive::list<block, boost::intrusive::member_hook<block, hook, &block::by_class>,
                                              boost::intrusive::constant_time_size<false>>;

    /// Whether the memory of that size would exceed the limit.
    bool exceeds(std::size_t bytes) const noexcept { return bytes > limit_ || used_ + shared_ > limit_ - bytes; }
    block* take(size_class wanted) noexcept;
    static block* obtain(size_class wanted) noexcept;
    static void give_back(block& b) noexcept;
    void drop_oldest() noexcept;
    void note_use() noexcept;
    std::uint64_t most_kept() const noexcept;

    const std::uint64_t usable_;
    const std::uint64_t limit_;
    mutable std::mutex mutex_;
    age_list live_;
    age_list kept_;
    std::array<class_list, size_class::count> kept_of_class_;
    // In bytes: requested, with that outside; outside the pool; in blocks in use; in kept blocks.
    std::uint64_t used_ = 0;
    std::uint64_t outside_ = 0;
    std::uint64_t shared_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t kept_bytes_ = 0;
    /// Without that outside: as soon as it is shared, the parent adds it.
    std::uint64_t high_water_ = 0;
    /// The peak of taken_ in the previous and in the current period; a period is a number of allocations.
    std::uint64_t last_peak_ = 0;
    std::uint64_t peak_ = 0;
    unsigned allocations_ = 0;
};

} // namespace coaccel::host

#endif
