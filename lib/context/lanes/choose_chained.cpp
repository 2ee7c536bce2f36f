#include "context/lanes/choose_chained.hpp"

#include <boost/assert.hpp>

#include <algorithm>

namespace coaccel::detail {

std::size_t choose_chained(std::span<const chain_lane> lanes, const frontier& waits) noexcept
{
    BOOST_ASSERT(!lanes.empty());
    const auto continues = [&waits](const chain_lane& l) {
        return l.load != 0 && std::ranges::find(waits, l.tail) != waits.end();
    };
    std::size_t best = 0;
    bool best_continues = continues(lanes[0]);
    for (std::size_t at = 1; at < lanes.size(); ++at) {
        const bool here = continues(lanes[at]);
        if (here == best_continues ? lanes[at].load < lanes[best].load : here) {
            best = at;
            best_continues = here;
        }
    }
    return best;
}

} // namespace coaccel::detail
