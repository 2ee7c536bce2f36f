#include "cuda/pinned_book.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace coaccel::cuda {
namespace {

constexpr std::size_t round_up(std::size_t n, std::size_t unit) noexcept
{
    return (n + unit - 1) / unit * unit;
}

std::size_t best_slab(std::size_t block) noexcept
{
    if (block > pinned_book::largest_block || !std::has_single_bit(block))
        return block;
    return std::clamp(8 * block, pinned_book::slab_unit, pinned_book::largest_slab);
}

} // namespace

std::size_t pinned_book::block_for(std::size_t bytes) const noexcept
{
    if (bytes > limit_)
        return 0;
    std::size_t block =
        bytes > largest_block ? round_up(bytes, slab_unit) : std::bit_ceil(std::max(bytes, smallest_block));
    // What fits the limit only without the rounding shall have it nevertheless.
    if (block > limit_)
        block = round_up(bytes, page);
    return std::max(block, page) <= limit_ ? block : 0;
}

bool pinned_book::has_free(std::size_t block_bytes) const noexcept
{
    const auto found = shelves_.find(block_bytes);
    return found != shelves_.end() && !found->second.open.empty();
}

pinned_book::answer pinned_book::take(std::size_t bytes)
{
    const std::size_t block = block_for(bytes);
    if (block == 0)
        return {};
    if (has_free(block)) {
        auto& open = shelves_.find(block)->second.open;
        entry& from = *open.back();
        const std::uintptr_t address = from.where.base + from.free.back() * block;
        from.free.pop_back();
        if (from.free.empty())
            open.pop_back();
        used_ += block;
        return {.what = verdict::have, .block = address};
    }
    if (growing_.contains(block))
        return {.what = verdict::wait};
    for (std::size_t bytes_of_slab = best_slab(block); bytes_of_slab >= std::max(block, page); bytes_of_slab /= 2) {
        auto victims = room_for(bytes_of_slab);
        if (!victims)
            continue;
        growing_.emplace(block, bytes_of_slab);
        for (const slab& s : *victims)
            drop(slabs_.find(s.base));
        return {.what = verdict::grow, .wanted = {0, bytes_of_slab, block}, .give_up = std::move(*victims)};
    }
    return {.what = verdict::wait};
}

/// The unused slabs that stand in the way; nothing when even without them there is no room.
std::optional<std::vector<pinned_book::slab>> pinned_book::room_for(std::size_t bytes) const
{
    std::uint64_t taken = reserved_;
    for (const auto& [block, coming] : growing_)
        taken += coming;
    std::vector<slab> victims;
    if (taken + bytes <= limit_)
        return victims;
    for (const auto& [base, e] : slabs_)
        if (e.unused())
            victims.push_back(e.where);
    // Giving one up costs a call of the driver, whatever its size.
    std::ranges::sort(victims, std::greater{}, &slab::bytes);
    std::size_t needed = 0;
    while (needed < victims.size() && taken + bytes > limit_)
        taken -= victims[needed++].bytes;
    if (taken + bytes > limit_)
        return std::nullopt;
    victims.resize(needed);
    return victims;
}

void pinned_book::give_back(std::uintptr_t block) noexcept
{
    auto found = slabs_.upper_bound(block);
    BOOST_ASSERT(found != slabs_.begin());
    entry& e = std::prev(found)->second;
    const std::size_t offset = block - e.where.base;
    BOOST_ASSERT(offset < e.where.bytes && offset % e.where.block_bytes == 0 && !e.unused());
    // Both vectors have had room for this since the slab came.
    e.free.push_back(static_cast<std::uint32_t>(offset / e.where.block_bytes));
    if (e.free.size() == 1)
        shelves_.find(e.where.block_bytes)->second.open.push_back(&e);
    used_ -= e.where.block_bytes;
}

void pinned_book::grown(const slab& s)
{
    add(s);
    growing_.erase(s.block_bytes);
}

void pinned_book::add(const slab& s)
{
    entry made{.where = s, .free = std::vector<std::uint32_t>(s.bytes / s.block_bytes)};
    // Blocks are handed out from the back: the first of the slab first.
    std::iota(made.free.rbegin(), made.free.rend(), 0u);
    shelf& on = shelves_[s.block_bytes];
    on.open.reserve(on.slabs + 1);
    const auto [where, inserted] = slabs_.emplace(s.base, std::move(made));
    BOOST_ASSERT(inserted);
    ++on.slabs;
    on.open.push_back(&where->second);
    reserved_ += s.bytes;
}

std::optional<pinned_book::slab> pinned_book::drop_unused() noexcept
{
    for (auto i = slabs_.begin(); i != slabs_.end(); ++i)
        if (i->second.unused())
            return drop(i);
    return std::nullopt;
}

std::optional<pinned_book::slab> pinned_book::drop_any() noexcept
{
    if (slabs_.empty())
        return std::nullopt;
    return drop(slabs_.begin());
}

pinned_book::slab pinned_book::drop(entry_map::iterator i) noexcept
{
    const slab gone = i->second.where;
    used_ -= (i->second.blocks() - i->second.free.size()) * gone.block_bytes;
    reserved_ -= gone.bytes;
    const auto on = shelves_.find(gone.block_bytes);
    std::erase(on->second.open, &i->second);
    slabs_.erase(i);
    if (--on->second.slabs == 0)
        shelves_.erase(on);
    return gone;
}

} // namespace coaccel::cuda
