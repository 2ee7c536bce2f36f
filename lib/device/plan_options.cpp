#include "core/option_check.hpp"

#include <coaccel/device/plan_options.hpp>

namespace coaccel {

error_code plan_options::check() const noexcept
{
    return detail::check_options({
        {instances >= 1 && instances <= max_instances, "instances", instances, "it must be from 1 to 4096"},
        {initial >= 1 && initial <= instances, "initial", initial, "it must be from 1 to `instances`"},
        {rerun <= rerun_policy::until_deadline, "rerun", rerun, detail::an_enumerator},
        {poison_limit >= 1, "poison_limit", poison_limit, "it must be at least 1"},
        // Written so that NaN is refused.
        {suspect_after.factor == 0 || suspect_after.factor >= 2, "suspect_after.factor", suspect_after.factor,
         "it must be 0 or at least 2"},
        {suspect_after.at_least >= std::chrono::milliseconds(1), "suspect_after.at_least", suspect_after.at_least,
         "it must be at least 1 ms"},
    });
}

} // namespace coaccel
