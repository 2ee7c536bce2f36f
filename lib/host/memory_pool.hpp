#ifndef COACCEL_HOST_MEMORY_POOL_HPP
#define COACCEL_HOST_MEMORY_POOL_HPP

#include "host/size_class.hpp"

#include <coaccel/core/backend.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <mutex>

namespace coaccel::host {

/// Aligned memory with a limit. Blocks come in size classes. Released ones are kept for the next allocation of their
/// class, as many as the recent past suggests will be wanted again; what is kept never stands in the way of an
/// allocation.
class memory_pool {
public:
    /// A limit of 0 is the memory this process may use.
    explicit memory_pool(std::uint64_t limit);
    memory_pool(const memory_pool&) = delete;
    memory_pool& operator=(const memory_pool&) = delete;
    ~memory_pool();

    result<void*> allocate(std::size_t bytes);
    void release(void* memory) noexcept;
    /// Gives what is kept back to the system.
    void trim() noexcept;
    memory_info info() const noexcept;

private:
    using hook = boost::intrusive::list_member_hook<>;

    /// Before the memory of each block, and as wide as its alignment, so that neither allocating nor releasing needs a
    /// table.
    struct alignas(64) block {
        /// Among those in use or, in the order of their release, those that are kept.
        hook by_age;
        /// Among those kept of its class.
        hook by_class;
        std::uint32_t index = 0;
        /// Of the class, without this header.
        std::size_t bytes = 0;
        /// As asked for, rounded up to a granule.
        std::size_t used = 0;
    };

    using age_list = boost::intrusive::list<block, boost::intrusive::member_hook<block, hook, &block::by_age>>;
    using class_list = boost::intrusive::list<block, boost::intrusive::member_hook<block, hook, &block::by_class>,
                                              boost::intrusive::constant_time_size<false>>;

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
    // Bytes: asked for; in blocks that are in use; in blocks that are kept.
    std::uint64_t used_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t kept_bytes_ = 0;
    std::uint64_t high_water_ = 0;
    /// The most that was taken in the period before this one and in this one; periods count allocations.
    std::uint64_t last_peak_ = 0;
    std::uint64_t peak_ = 0;
    unsigned allocations_ = 0;
};

} // namespace coaccel::host

#endif
