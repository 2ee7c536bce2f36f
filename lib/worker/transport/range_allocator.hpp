#ifndef COACCEL_WORKER_TRANSPORT_RANGE_ALLOCATOR_HPP
#define COACCEL_WORKER_TRANSPORT_RANGE_ALLOCATOR_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace coaccel::worker {

/// Manages the ranges of a memory area: offsets only, never the memory itself. Best fit; adjacent free ranges are
/// merged. Ranges of a page or more are page-aligned, smaller ones are aligned to 256 bytes.
///
/// Thread safety: none.
class COACCEL_DECL range_allocator {
public:
    static constexpr std::uint64_t page = 4096;
    static constexpr std::uint64_t grain = 256;

    /// Preconditions: at most half the address space.
    explicit range_allocator(std::uint64_t bytes);

    /// Returns the offset of a range of at least `bytes`; nothing if no free range is large enough. A range of zero
    /// bytes has a unique offset too.
    std::optional<std::uint64_t> take(std::uint64_t bytes);

    /// Preconditions: `offset` was returned by take().
    void give_back(std::uint64_t offset);

    std::uint64_t used() const noexcept { return used_; }
    bool unused() const noexcept { return used_ == 0; }

    /// The rounded size of the range taken at `offset`; zero if there is none.
    std::uint64_t size_at(std::uint64_t offset) const noexcept;

private:
    // Orders by size, then by offset.
    using by_size = std::set<std::pair<std::uint64_t, std::uint64_t>>;
    using free_map = std::map<std::uint64_t, std::uint64_t>;

    void add(std::uint64_t offset, std::uint64_t bytes);
    void remove(free_map::iterator range);

    std::uint64_t total_;
    std::uint64_t used_ = 0;
    free_map free_;
    by_size sizes_;
    // Ordered by the whole pages inside, so that the search for pages finds only ranges that fit after alignment.
    by_size page_sizes_;
    std::unordered_map<std::uint64_t, std::uint64_t> taken_;
};

} // namespace coaccel::worker

#endif
