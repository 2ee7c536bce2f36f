#include "core/option_check.hpp"

#include <coaccel/device/device_options.hpp>
#include <coaccel/device/device_state.hpp>

namespace coaccel {
namespace {

constexpr int most_standbys = 4;

} // namespace

error_code device_options::check() const noexcept
{
    const auto ec = detail::check_options({
        {kind <= device_kind::cuda, "kind is none of its values"},
        {ordinal >= 0, "ordinal is negative"},
        {queue.max_in_flight > 0, "queue.max_in_flight is to be above zero"},
        {queue.max_queued > 0, "queue.max_queued is to be above zero"},
        {queue.max_bytes_in_flight > 0, "queue.max_bytes_in_flight is to be above zero"},
        {isolation <= coaccel::isolation::worker, "isolation is none of its values"},
        {standby >= 0 && standby <= most_standbys, "standby is to be from 0 to 4"},
        {!plugin || *plugin, "plugin is to be the name of a file, or null"},
    });
    if (ec)
        return ec;
    for (const auto& part : {context.check(), restart.validate(), cuda.check(), worker.check()})
        if (part)
            return part;
    return host.check();
}

std::string_view name(device_state s) noexcept
{
    switch (s) {
    case device_state::starting: return "starting";
    case device_state::ready: return "ready";
    case device_state::busy: return "busy";
    case device_state::suspect: return "suspect";
    case device_state::rebuilding: return "rebuilding";
    case device_state::failed: return "failed";
    case device_state::stopping: return "stopping";
    case device_state::stopped: return "stopped";
    }
    return "unknown";
}

} // namespace coaccel
