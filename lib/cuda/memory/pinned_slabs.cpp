#include "cuda/memory/pinned_slabs.hpp"

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
    if (block > pinned_slabs::largest_block || !std::has_single_bit(block))
        return block;
    return std::clamp(8 * block, pinned_slabs::slab_unit, pinned_slabs::largest_slab);
}

} // namespace

std::size_t pinned_slabs::block_for(std::size_t bytes, client who) const noexcept
{
    const std::uint64_t most = who == client::user ? limit_ - reserve_ : reserve_;
    if (bytes > most)
        return 0;
    std::size_t block =
        bytes > largest_block ? round_up(bytes, slab_unit) : std::bit_ceil(std::max(bytes, smallest_block));
    // If only the rounded size exceeds the limit, round up to pages instead.
    if (block > most)
        block = round_up(bytes, page);
    return std::max(block, page) <= most ? block : 0;
}

bool pinned_slabs::has_free(const size_class_key& where) const noexcept
{
    const auto found = size_classes_.find(where);
    return found != size_classes_.end() && !found->second.open.empty();
}

pinned_slabs::answer pinned_slabs::take(std::size_t bytes, client who)
{
    const std::size_t block = block_for(bytes, who);
    if (block == 0)
        return {};
    const size_class_key where{who, block};
    if (has_free(where)) {
        auto& open = size_classes_.find(where)->second.open;
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

/// The unused slabs to give up for this size; nothing if even that does not make enough room.
std::optional<std::vector<pinned_slabs::slab>> pinned_slabs::room_for(std::size_t bytes, client who) const
{
    const bool for_user = who == client::user;
    std::uint64_t taken = reserved_ + bytes;
    std::uint64_t by_users = reserved_by_users_ + (for_user ? bytes : 0);
    for (const auto& [where, coming] : growing_) {
        taken += coming;
        by_users += where.who == client::user ? coming : 0;
    }
    const auto too_much_by_users = [&] { return for_user && by_users > limit_ - reserve_; };
    std::vector<slab> victims;
    if (taken <= limit_ && !too_much_by_users())
        return victims;
    std::vector<slab> unused;
    for (const auto& [base, e] : slabs_)
        if (e.unused())
            unused.push_back(e.where);
    // Largest first: giving up a slab costs one driver call, whatever its size.
    std::ranges::sort(unused, std::greater{}, &slab::bytes);
    // Users' slabs first: only these help if users hold too much.
    std::ranges::stable_sort(unused, {}, [](const slab& s) { return s.size_class.who; });
    for (const slab& s : unused) {
        const bool of_user = s.size_class.who == client::user;
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

void pinned_slabs::give_back(std::uintptr_t block) noexcept
{
    auto found = slabs_.upper_bound(block);
    BOOST_ASSERT(found != slabs_.begin());
    entry& e = std::prev(found)->second;
    const std::size_t offset = block - e.where.base;
    const std::size_t block_bytes = e.where.size_class.block_bytes;
    BOOST_ASSERT(offset < e.where.bytes && offset % block_bytes == 0 && !e.unused());
    // Neither vector reallocates: add() has reserved the space.
    e.free.push_back(static_cast<std::uint32_t>(offset / block_bytes));
    if (e.free.size() == 1)
        size_classes_.find(e.where.size_class)->second.open.push_back(&e);
    used_ -= block_bytes;
}

void pinned_slabs::grown(const slab& s)
{
    add(s);
    growing_.erase(s.size_class);
}

void pinned_slabs::add(const slab& s)
{
    entry made{.where = s, .free = std::vector<std::uint32_t>(s.bytes / s.size_class.block_bytes)};
    // Blocks are taken from the back, so this starts with the first block of the slab.
    std::iota(made.free.rbegin(), made.free.rend(), 0u);
    size_class& on = size_classes_[s.size_class];
    on.open.reserve(on.slabs + 1);
    const auto [where, inserted] = slabs_.emplace(s.base, std::move(made));
    BOOST_ASSERT(inserted);
    ++on.slabs;
    on.open.push_back(&where->second);
    reserved_ += s.bytes;
    reserved_by_users_ += s.size_class.who == client::user ? s.bytes : 0;
}

std::optional<pinned_slabs::slab> pinned_slabs::drop_unused() noexcept
{
    for (auto i = slabs_.begin(); i != slabs_.end(); ++i)
        if (i->second.unused())
            return drop(i);
    return std::nullopt;
}

std::optional<pinned_slabs::slab> pinned_slabs::drop_any() noexcept
{
    if (slabs_.empty())
        return std::nullopt;
    return drop(slabs_.begin());
}

pinned_slabs::slab pinned_slabs::drop(entry_map::iterator i) noexcept
{
    const slab gone = i->second.where;
    used_ -= (i->second.blocks() - i->second.free.size()) * gone.size_class.block_bytes;
    reserved_ -= gone.bytes;
    reserved_by_users_ -= gone.size_class.who == client::user ? gone.bytes : 0;
    const auto on = size_classes_.find(gone.size_class);
    std::erase(on->second.open, &i->second);
    slabs_.erase(i);
    if (--on->second.slabs == 0)
        size_classes_.erase(on);
    return gone;
}

} // namespace coaccel::cuda
