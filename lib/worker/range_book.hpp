#ifndef COACCEL_WORKER_RANGE_BOOK_HPP
#define COACCEL_WORKER_RANGE_BOOK_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace coaccel::worker {

/// Who has which part of a memory area: offsets only, never the memory itself. Best fit; neighbours are joined.
/// Ranges of a page or more lie on whole pages, smaller ones on multiples of 256 bytes.
///
/// Thread safety: none.
class COACCEL_DECL range_book {
public:
    static constexpr std::uint64_t page = 4096;
    static constexpr std::uint64_t grain = 256;

    /// Preconditions: not more than half the address space.
    explicit range_book(std::uint64_t bytes);

    /// The offset of a range of at least `bytes`; nothing when no free range is large enough. Zero bytes have an offset
    /// of their own too.
    std::optional<std::uint64_t> take(std::uint64_t bytes);

    /// Preconditions: `offset` was taken.
    void give_back(std::uint64_t offset);

    std::uint64_t used() const noexcept { return used_; }
    bool unused() const noexcept { return used_ == 0; }

    /// The rounded size of the range taken at `offset`, zero when none was.
    std::uint64_t size_at(std::uint64_t offset) const noexcept;

private:
    // The least range that is large enough comes first, then the lowest.
    using by_size = std::set<std::pair<std::uint64_t, std::uint64_t>>;
    using free_map = std::map<std::uint64_t, std::uint64_t>;

    void add(std::uint64_t offset, std::uint64_t bytes);
    void remove(free_map::iterator range);

    std::uint64_t total_;
    std::uint64_t used_ = 0;
    free_map free_;
    by_size sizes_;
    // Ordered by the whole pages inside, so that the search for pages never meets a range that only seems to fit.
    by_size page_sizes_;
    std::unordered_map<std::uint64_t, std::uint64_t> taken_;
};

} // namespace coaccel::worker

#endif
