#ifndef COACCEL_ACTOR_RESTART_TEXT_HPP
#define COACCEL_ACTOR_RESTART_TEXT_HPP

#include "core/option_check.hpp"

#include <coaccel/actor/restart_policy.hpp>

#include <cstddef>
#include <string>

// The ends of log messages about failures.
namespace coaccel::detail {

inline std::string restart_text(std::size_t restarts, std::size_t max_restarts)
{
    return "; restart " + std::to_string(restarts) + " of " + std::to_string(max_restarts);
}

inline std::string used_up_text(const restart_policy& policy)
{
    return "; the restart budget of " + std::to_string(policy.max_restarts) + " in " +
           option_value(policy.window).text() + " is used up";
}

} // namespace coaccel::detail

#endif
