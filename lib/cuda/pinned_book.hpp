#ifndef COACCEL_CUDA_PINNED_BOOK_HPP
#define COACCEL_CUDA_PINNED_BOOK_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace coaccel::cuda {

/// Who has which piece of the page-locked memory: slabs cut into blocks of one size. It decides and counts; it is told
/// where slabs lie and never touches them.
class pinned_book {
public:
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t smallest_block = 256;
    /// Anything larger has a slab of its own, a multiple of slab_unit.
    static constexpr std::size_t largest_block = std::size_t(4) << 20;
    static constexpr std::size_t slab_unit = std::size_t(2) << 20;
    static constexpr std::size_t largest_slab = std::size_t(16) << 20;

    enum class taker : std::uint8_t {
        /// A pinned buffer, which may be held for ever.
        user,
        /// A copy or a result on its way, which ends without needing more.
        own,
    };

    /// Blocks of one size for one kind of taker. A slab of both could be held up by a single block of a user's.
    struct shelf_key {
        taker who = taker::user;
        std::size_t block_bytes = 0;
        auto operator<=>(const shelf_key&) const = default;
    };

    struct slab {
        std::uintptr_t base = 0;
        std::size_t bytes = 0;
        shelf_key shelf{};
    };

    enum class verdict : std::uint8_t {
        /// Here is a block.
        have,
        /// First give up these slabs, then make one and say `grown` or `not_grown`.
        grow,
        /// Not before something is given back or has grown.
        wait,
        /// It is larger than what the taker can ever have.
        never,
    };

    struct answer {
        verdict what = verdict::never;
        std::uintptr_t block = 0;
        slab wanted{};
        std::vector<slab> give_up{};
    };

    /// Users never have the last `reserve` bytes. Own takers ask for no more than that at once, so that each of them is
    /// served in the end, whatever users hold.
    explicit pinned_book(std::uint64_t limit, std::uint64_t reserve = 0) noexcept : limit_(limit), reserve_(reserve) {}

    answer take(std::size_t bytes, taker who = taker::user);
    void give_back(std::uintptr_t block) noexcept;

    /// What a request of so many bytes is rounded up to; zero when the limit does not allow it.
    std::size_t block_for(std::size_t bytes, taker who = taker::user) const noexcept;
    bool has_free(const shelf_key& where) const noexcept;

    void grown(const slab& s);
    void not_grown(const shelf_key& where) noexcept { growing_.erase(where); }
    /// Takes a slab back that was given up.
    void add(const slab& s);

    /// Strikes out a slab nobody has a block of, if there is one.
    std::optional<slab> drop_unused() noexcept;
    /// Strikes out any slab.
    std::optional<slab> drop_any() noexcept;

    template <class Function>
    void for_each_slab(Function f) const
    {
        for (const auto& [base, e] : slabs_)
            f(e.where);
    }

    std::uint64_t used() const noexcept { return used_; }
    std::uint64_t reserved() const noexcept { return reserved_; }

private:
    struct entry {
        slab where;
        std::vector<std::uint32_t> free;

        std::size_t blocks() const noexcept { return where.bytes / where.shelf.block_bytes; }
        bool unused() const noexcept { return free.size() == blocks(); }
    };

    struct shelf {
        std::size_t slabs = 0;
        /// Those with a free block.
        std::vector<entry*> open;
    };

    using entry_map = std::map<std::uintptr_t, entry>;

    std::optional<std::vector<slab>> room_for(std::size_t bytes, taker who) const;
    slab drop(entry_map::iterator i) noexcept;

    const std::uint64_t limit_;
    const std::uint64_t reserve_;
    entry_map slabs_;
    std::map<shelf_key, shelf> shelves_;
    /// The bytes of slabs on their way.
    std::map<shelf_key, std::size_t> growing_;
    std::uint64_t used_ = 0;
    std::uint64_t reserved_ = 0;
    std::uint64_t reserved_by_users_ = 0;
};

} // namespace coaccel::cuda

#endif
