#ifndef COACCEL_SERVE_BALANCE_HPP
#define COACCEL_SERVE_BALANCE_HPP

#include <cstdint>

namespace coaccel::serve {

/// How a replica is chosen among those that can be used.
enum class balance : std::uint8_t {
    least_loaded, ///< The one with the fewest requests; of several, in turn.
    round_robin,  ///< One after another.
    two_choices,  ///< The less loaded of two random ones: nearly as even as least_loaded, however many there are.
    sticky,       ///< The same one for the same key, as long as it can be used; other keys stay where they are.
};

} // namespace coaccel::serve

#endif
