#include "telemetry/trace_rows.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace coaccel::detail {
namespace {

template <class T>
using smallest_first = std::priority_queue<T, std::vector<T>, std::greater<>>;

struct rows_of_track {
    /// When each occupied row becomes free.
    smallest_first<std::pair<std::int64_t, std::uint32_t>> occupied;
    smallest_first<std::uint32_t> free;
    std::uint32_t count = 0;

    std::uint32_t take(std::int64_t begin, std::int64_t end)
    {
        while (!occupied.empty() && occupied.top().first <= begin) {
            free.push(occupied.top().second);
            occupied.pop();
        }
        std::uint32_t row = count;
        if (free.empty()) {
            ++count;
        } else {
            row = free.top();
            free.pop();
        }
        occupied.emplace(end, row);
        return row;
    }
};

} // namespace

std::vector<std::uint32_t> assign_trace_rows(std::span<const trace_period> periods)
{
    std::vector<std::size_t> order(periods.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::tuple(periods[i].begin, periods[i].end); });
    std::vector<std::uint32_t> rows(periods.size());
    std::map<std::uint32_t, rows_of_track> tracks;
    for (const std::size_t i : order)
        rows[i] = tracks[periods[i].track].take(periods[i].begin, periods[i].end);
    return rows;
}

} // namespace coaccel::detail
