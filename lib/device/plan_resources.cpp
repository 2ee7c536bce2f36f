#include "device/plan_resources.hpp"

#include "device/constant_table.hpp"
#include "device/loaded_plan.hpp"

#include <utility>

namespace coaccel::detail {

std::vector<any_ref> take_buffers(plan_resources& from, const loaded_plan& plan, constant_table& constants)
{
    std::vector<any_ref> all;
    for (const plan_instance& i : from.instances)
        all.push_back(i.memory);
    if (from.prepared)
        all.push_back(from.prepared->memory);
    for (const any_ref& r : from.stand_ins)
        if (r.device != 0)
            all.push_back(r);
    // The other buffers of a graph are not its own.
    if (plan.data.over_buffers) {
        from.instances.clear();
        return all;
    }
    for (const any_ref& buffer : from.constant_buffers)
        if (const any_ref last = constants.leave(buffer); last.device != 0)
            all.push_back(last);
    for (std::size_t i = 0; i < from.states.size(); ++i)
        if (plan.common_indices[i] == own_state && from.states[i].device != 0)
            all.push_back(from.states[i]);
    from = {};
    return all;
}

} // namespace coaccel::detail
