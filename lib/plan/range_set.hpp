#ifndef COACCEL_PLAN_RANGE_SET_HPP
#define COACCEL_PLAN_RANGE_SET_HPP

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace coaccel::detail {

/// A set of elements, stored as ranges that neither overlap nor touch.
class range_set {
public:
    struct range {
        std::uint64_t begin;
        std::uint64_t end;
    };

    void add(std::uint64_t begin, std::uint64_t end)
    {
        if (begin >= end)
            return;
        auto next = ends_.upper_bound(begin);
        if (next != ends_.begin() && std::prev(next)->second >= begin)
            next = std::prev(next);
        while (next != ends_.end() && next->first <= end) {
            begin = std::min(begin, next->first);
            end = std::max(end, next->second);
            next = ends_.erase(next);
        }
        ends_.emplace(begin, end);
    }

    /// The first elements of [begin, end) that are not in the set.
    std::optional<range> first_gap(std::uint64_t begin, std::uint64_t end) const
    {
        const auto next = ends_.upper_bound(begin);
        if (next != ends_.begin())
            begin = std::max(begin, std::prev(next)->second);
        if (begin >= end)
            return std::nullopt;
        return range{begin, next == ends_.end() ? end : std::min(end, next->first)};
    }

private:
    /// From the beginning of each range to its end.
    std::map<std::uint64_t, std::uint64_t> ends_;
};

} // namespace coaccel::detail

#endif
