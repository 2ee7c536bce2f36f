#include "context/buffers/adopted_buffers.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::detail {

void adopted_buffers::expect()
{
    if (!room_)
        room_ = std::make_unique<owner_list>();
    const std::size_t all = expected_ + 1;
    // Doubled, because `reserve` alone would reallocate each time.
    if (room_->capacity() < all) {
        room_->reserve(2 * all);
        released_.reserve(2 * all);
    }
    expected_ = all;
}

bool adopted_buffers::next_unused(const lane_clock& order, std::shared_ptr<void>& out) noexcept
{
    const auto found = std::ranges::find_if(released_, [&](const retired_buffer& b) {
        frontier uses;
        b.log.collect_uses(order, uses);
        return uses.empty();
    });
    if (found == released_.end())
        return false;
    out = std::move(*found->owner);
    released_.erase(found);
    --expected_;
    return true;
}

std::unique_ptr<owner_list> adopted_buffers::take_owners(buffer_table& table) noexcept
{
    if (!room_)
        return nullptr;
    for (retired_buffer& b : released_)
        room_->push_back(std::move(*b.owner));
    released_.clear();
    table.take_owners(*room_);
    expected_ = 0;
    return std::move(room_);
}

} // namespace coaccel::detail
