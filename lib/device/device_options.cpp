#include <coaccel/device/device_options.hpp>
#include <coaccel/device/device_state.hpp>

namespace coaccel {
namespace {

constexpr int most_standbys = 4;

} // namespace

error_code device_options::check() const noexcept
{
    const bool fits = kind <= device_kind::cuda && ordinal >= 0 && queue.max_in_flight > 0 && queue.max_queued > 0 &&
                      queue.max_bytes_in_flight > 0 && isolation <= coaccel::isolation::worker && standby >= 0 &&
                      standby <= most_standbys && (!plugin || *plugin);
    if (!fits)
        return errc::invalid_option;
    if (auto ec = context.check())
        return ec;
    if (auto ec = restart.validate())
        return ec;
    if (auto ec = cuda.check())
        return ec;
    if (auto ec = worker.check())
        return ec;
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
