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
        {kind <= device_kind::cuda, "kind", kind, detail::an_enumerator},
        {ordinal >= 0, "ordinal", ordinal, detail::not_negative},
        {queue.max_in_flight > 0, "queue.max_in_flight", queue.max_in_flight, detail::above_zero},
        {queue.max_queued > 0, "queue.max_queued", queue.max_queued, detail::above_zero},
        {queue.max_bytes_in_flight > 0, "queue.max_bytes_in_flight", queue.max_bytes_in_flight, detail::above_zero},
        {isolation <= coaccel::isolation::worker, "isolation", isolation, detail::an_enumerator},
        {standby >= 0 && standby <= most_standbys, "standby", standby, "it must be from 0 to 4"},
        {standby == 0 || isolation == coaccel::isolation::worker, "standby", standby,
         "it must be 0 unless isolation is worker"},
    });
    if (ec)
        return ec;
    if (plugin && !*plugin)
        return detail::option_error("plugin is an empty text; it must be the name of a file, or null");
    for (const auto& part : {context.check(), restart.validate(), cuda.check(), worker.check()})
        if (part)
            return part;
    return host.check();
}

std::string_view to_string(device_state s) noexcept
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
