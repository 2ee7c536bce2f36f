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

std::size_t pinned_book::block_for(std::size_t bytes, taker who) const noexcept
{
    const std::uint64_t most = who == taker::user ? limit_ - reserve_ : reserve_;
    if (bytes > most)
        return 0;
    std::size_t block =
        bytes > largest_block ? round_up(bytes, slab_unit) : std::bit_ceil(std::max(bytes, smallest_block));
    // What fits the limit only without the rounding shall have it nevertheless.
    if (block > most)
        block = round_up(bytes, page);
    return std::max(block, page) <= most ? block : 0;
}

bool pinned_book::has_free(const shelf_key& where) const noexcept
{
    const auto found = shelves_.find(where);
    return found != shelves_.end() && !found->second.open.empty();
}

pinned_book::answer pinned_book::take(std::size_t bytes, taker who)
{
    const std::size_t block = block_for(bytes, who);
    if (block == 0)
        return {};
    const shelf_key where{who, block};
    if (has_free(where)) {
        auto& open = shelves_.find(where)->second.open;
        entry& from = *open.back();
        const std::uintptr_t address = from.where.base + from.free.back() * block;
        from.free.pop_back();
        if (from.free.empty())
            open.pop_back();
        used_ += block;
        return {.what = verdict::have, .block = address};
    }
    if (growing_.contains(where))
        return {.what = verdict::wait};
    for (std::size_t bytes_of_slab = best_slab(block); bytes_of_slab >= std::max(block, page); bytes_of_slab /= 2) {
        auto victims = room_for(bytes_of_slab, who);
        if (!victims)
            continue;
        growing_.emplace(where, bytes_of_slab);
        for (const slab& s : *victims)
            drop(slabs_.find(s.base));
        return {.what = verdict::grow, .wanted = {0, bytes_of_slab, where}, .give_up = std::move(*victims)};
    }
    return {.what = verdict::wait};
}

/// The unused slabs that stand in the way; nothing when even without them there is no room.
std::optional<std::vector<pinned_book::slab>> pinned_book::room_for(std::size_t bytes, taker who) const
{
    const bool for_user = who == taker::user;
    std::uint64_t taken = reserved_ + bytes;
    std::uint64_t by_users = reserved_by_users_ + (for_user ? bytes : 0);
    for (const auto& [where, coming] : growing_) {
        taken += coming;
        by_users += where.who == taker::user ? coming : 0;
    }
    const auto too_much_by_users = [&] { return for_user && by_users > limit_ - reserve_; };
    std::vector<slab> victims;
    if (taken <= limit_ && !too_much_by_users())
        return victims;
    std::vector<slab> unused;
    for (const auto& [base, e] : slabs_)
        if (e.unused())
            unused.push_back(e.where);
    // Giving one up costs a call of the driver, whatever its size.
    std::ranges::sort(unused, std::greater{}, &slab::bytes);
    // Users' first: where they have too much, nothing else helps.
    std::ranges::stable_sort(unused, {}, [](const slab& s) { return s.shelf.who; });
    for (const slab& s : unused) {
        const bool of_user = s.shelf.who == taker::user;
        if (taken <= limit_ && !(of_user && too_much_by_users()))
            continue;
        taken -= s.bytes;
        by_users -= of_user ? s.bytes : 0;
        victims.push_back(s);
    }
    if (taken > limit_ || too_much_by_users())
        return std::nullopt;
    return victims;
}

void pinned_book::give_back(std::uintptr_t block) noexcept
{
    auto found = slabs_.upper_bound(block);
    BOOST_ASSERT(found != slabs_.begin());
    entry& e = std::prev(found)->second;
    const std::size_t offset = block - e.where.base;
    const std::size_t block_bytes = e.where.shelf.block_bytes;
    BOOST_ASSERT(offset < e.where.bytes && offset % block_bytes == 0 && !e.unused());
    // Both vectors have had room for this since the slab came.
    e.free.push_back(static_cast<std::uint32_t>(offset / block_bytes));
    if (e.free.size() == 1)
        shelves_.find(e.where.shelf)->second.open.push_back(&e);
    used_ -= block_bytes;
}

void pinned_book::grown(const slab& s)
{
    add(s);
    growing_.erase(s.shelf);
}

void pinned_book::add(const slab& s)
{
    entry made{.where = s, .free = std::vector<std::uint32_t>(s.bytes / s.shelf.block_bytes)};
    // Blocks are handed out from the back: the first of the slab first.
    std::iota(made.free.rbegin(), made.free.rend(), 0u);
    shelf& on = shelves_[s.shelf];
    on.open.reserve(on.slabs + 1);
    const auto [where, inserted] = slabs_.emplace(s.base, std::move(made));
    BOOST_ASSERT(inserted);
    ++on.slabs;
    on.open.push_back(&where->second);
    reserved_ += s.bytes;
    reserved_by_users_ += s.shelf.who == taker::user ? s.bytes : 0;
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
    used_ -= (i->second.blocks() - i->second.free.size()) * gone.shelf.block_bytes;
    reserved_ -= gone.bytes;
    reserved_by_users_ -= gone.shelf.who == taker::user ? gone.bytes : 0;
    const auto on = shelves_.find(gone.shelf);
    std::erase(on->second.open, &i->second);
    slabs_.erase(i);
    if (--on->second.slabs == 0)
        shelves_.erase(on);
    return gone;
}

} // namespace coaccel::cuda
