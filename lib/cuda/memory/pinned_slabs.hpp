#ifndef COACCEL_CUDA_MEMORY_PINNED_SLABS_HPP
#define COACCEL_CUDA_MEMORY_PINNED_SLABS_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace coaccel::cuda {

/// Bookkeeping for page-locked memory: slabs divided into blocks of one size. It only decides and counts; it never
/// accesses the memory.
class pinned_slabs {
public:
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t smallest_block = 256;
    /// A larger block gets its own slab, a multiple of slab_unit.
    static constexpr std::size_t largest_block = std::size_t(4) << 20;
    static constexpr std::size_t slab_unit = std::size_t(2) << 20;
    static constexpr std::size_t largest_slab = std::size_t(16) << 20;

    enum class client : std::uint8_t {
        /// A pinned buffer, which may be held for ever.
        user,
        /// A copy or result in flight, which ends without needing more.
        own,
    };

    /// Blocks of one size for one kind of client. In a slab shared by both kinds, a single block held by a user could
    /// keep the whole slab in use.
    struct size_class_key {
        client who = client::user;
        std::size_t block_bytes = 0;
        auto operator<=>(const size_class_key&) const = default;
    };

    struct slab {
        std::uintptr_t base = 0;
        std::size_t bytes = 0;
        size_class_key size_class{};
    };

    enum class verdict : std::uint8_t {
        /// `block` is the memory.
        have,
        /// Give up the slabs in `give_up`, then create `wanted` and call `grown` or `not_grown`.
        grow,
        /// Try again after a block is given back or a slab has grown.
        wait,
        /// The size exceeds the client's limit.
        never,
    };

    struct answer {
        verdict what = verdict::never;
        std::uintptr_t block = 0;
        slab wanted{};
        std::vector<slab> give_up{};
    };

    /// Users never get the last `reserve` bytes. Own clients ask for at most that much at once, so each of them is
    /// served in the end, whatever users hold.
    explicit pinned_slabs(std::uint64_t limit, std::uint64_t reserve = 0) noexcept : limit_(limit), reserve_(reserve) {}

    answer take(std::size_t bytes, client who = client::user);
    void give_back(std::uintptr_t block) noexcept;

    /// The rounded block size for a request; zero if the limit does not allow it.
    std::size_t block_for(std::size_t bytes, client who = client::user) const noexcept;
    bool has_free(const size_class_key& where) const noexcept;

    void grown(const slab& s);
    void not_grown(const size_class_key& where) noexcept { growing_.erase(where); }
    /// Adds a slab, also one that was given up before.
    void add(const slab& s);

    /// Removes a slab without blocks in use, if there is one.
    std::optional<slab> drop_unused() noexcept;
    /// Removes any slab.
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

        std::size_t blocks() const noexcept { return where.bytes / where.size_class.block_bytes; }
        bool unused() const noexcept { return free.size() == blocks(); }
    };

    struct size_class {
        std::size_t slabs = 0;
        /// Slabs with a free block.
        std::vector<entry*> open;
    };

    using entry_map = std::map<std::uintptr_t, entry>;

    std::optional<std::vector<slab>> room_for(std::size_t bytes, client who) const;
    slab drop(entry_map::iterator i) noexcept;

    const std::uint64_t limit_;
    const std::uint64_t reserve_;
    entry_map slabs_;
    std::map<size_class_key, size_class> size_classes_;
    /// Sizes of slabs being created.
    std::map<size_class_key, std::size_t> growing_;
    std::uint64_t used_ = 0;
    std::uint64_t reserved_ = 0;
    std::uint64_t reserved_by_users_ = 0;
};

} // namespace coaccel::cuda

#endif
