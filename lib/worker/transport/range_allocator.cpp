#include "worker/transport/range_allocator.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <iterator>

namespace coaccel::worker {
namespace {

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept
{
    return (bytes + unit - 1) / unit * unit;
}

std::uint64_t whole_pages(std::uint64_t offset, std::uint64_t bytes) noexcept
{
    const auto begin = round_up(offset, range_allocator::page);
    const auto end = (offset + bytes) / range_allocator::page * range_allocator::page;
    return end > begin ? end - begin : 0;
}

} // namespace

range_allocator::range_allocator(std::uint64_t bytes) : total_(bytes / grain * grain)
{
    BOOST_ASSERT(bytes <= std::uint64_t(1) << 63);
    if (total_ != 0)
        add(0, total_);
}

std::optional<std::uint64_t> range_allocator::take(std::uint64_t bytes)
{
    if (bytes > total_)
        return std::nullopt;
    const bool paged = bytes >= page;
    const auto size = paged ? round_up(bytes, page) : round_up(std::max<std::uint64_t>(bytes, 1), grain);
    const auto& candidates = paged ? page_sizes_ : sizes_;
    const auto best = candidates.lower_bound({size, 0});
    if (best == candidates.end())
        return std::nullopt;
    const auto range = free_.find(best->second);
    const auto [begin, length] = *range;
    const auto offset = paged ? round_up(begin, page) : begin;
    remove(range);
    if (offset != begin)
        add(begin, offset - begin);
    if (offset + size != begin + length)
        add(offset + size, begin + length - offset - size);
    taken_.emplace(offset, size);
    used_ += size;
    return offset;
}

void range_allocator::give_back(std::uint64_t offset)
{
    const auto found = taken_.find(offset);
    BOOST_ASSERT(found != taken_.end());
    if (found == taken_.end())
        return;
    auto begin = offset;
    auto end = offset + found->second;
    used_ -= found->second;
    taken_.erase(found);
    if (const auto next = free_.find(end); next != free_.end()) {
        end += next->second;
        remove(next);
    }
    if (const auto after = free_.lower_bound(begin); after != free_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == begin) {
            begin = before->first;
            remove(before);
        }
    }
    add(begin, end - begin);
}

std::uint64_t range_allocator::size_at(std::uint64_t offset) const noexcept
{
    const auto found = taken_.find(offset);
    return found == taken_.end() ? 0 : found->second;
}

void range_allocator::add(std::uint64_t offset, std::uint64_t bytes)
{
    free_.emplace(offset, bytes);
    sizes_.emplace(bytes, offset);
    if (const auto pages = whole_pages(offset, bytes); pages != 0)
        page_sizes_.emplace(pages, offset);
}

void range_allocator::remove(free_map::iterator range)
{
    const auto [offset, bytes] = *range;
    free_.erase(range);
    sizes_.erase({bytes, offset});
    page_sizes_.erase({whole_pages(offset, bytes), offset});
}

} // namespace coaccel::worker
