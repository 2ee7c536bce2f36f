#ifndef COACCEL_CONTEXT_RECENTLY_USED_HPP
#define COACCEL_CONTEXT_RECENTLY_USED_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>

namespace coaccel::detail {

/// Items with a member `id`, such as plans, of which only the most recently used ones are kept. Addresses are stable.
template <class Item>
class recently_used {
public:
    /// Null if there is none. It becomes the most recently used one.
    Item* find(std::uint64_t id) noexcept
    {
        const auto at = std::ranges::find(items_, id, &Item::id);
        if (at == items_.end())
            return nullptr;
        items_.splice(items_.begin(), items_, at);
        return &items_.front();
    }

    Item& add(Item item) { return items_.emplace_front(std::move(item)); }

    /// Calls `drop` for the least recently used items, until there are fewer than `limit`. `drop` returns false for an
    /// item that has to stay.
    template <class Drop>
    void make_room(std::size_t limit, Drop drop)
    {
        for (auto at = items_.end(); items_.size() >= limit && at != items_.begin();) {
            --at;
            if (drop(*at))
                at = items_.erase(at);
        }
    }

    std::size_t size() const noexcept { return items_.size(); }
    auto begin() noexcept { return items_.begin(); }
    auto end() noexcept { return items_.end(); }
    auto begin() const noexcept { return items_.begin(); }
    auto end() const noexcept { return items_.end(); }
    void clear() noexcept { items_.clear(); }

private:
    /// The most recently used one first.
    std::list<Item> items_;
};

} // namespace coaccel::detail

#endif
