#include "serve/hot_swap_core.hpp"

#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <array>
#include <string>

namespace coaccel::detail {
namespace {

void write(telemetry::metric_writer& out, const std::string& name, const serve::hot_swap_stats& s)
{
    const telemetry::labels mine{{"swap", name}};
    const auto count = [&](const char* metric, const char* help, const char* label, const char* value,
                           std::uint64_t n) {
        out.counter(metric, help, {{"swap", name}, {label, value}}, static_cast<double>(n));
    };
    const auto requests = [&](const char* outcome, std::uint64_t n) {
        count("coaccel_swap_requests_total", "Requests that ended, by outcome.", "outcome", outcome, n);
    };
    requests("completed", s.completed);
    requests("failed", s.failed);
    requests("other", s.other);
    requests("refused", s.refused);
    const auto loads = [&](const char* outcome, std::uint64_t n) {
        count("coaccel_swap_loads_total", "Loads of versions that ended, by outcome.", "outcome", outcome, n);
    };
    loads("switched", s.switches);
    loads("failed", s.loads_failed);
    loads("cancelled", s.loads_cancelled);
    const auto rollbacks = [&](const char* by, std::uint64_t n) {
        count("coaccel_swap_rollbacks_total", "Versions that were rolled back, by whom.", "by", by, n);
    };
    rollbacks("hand", s.rolled_back_by_hand);
    rollbacks("rule", s.rolled_back_by_rule);
    out.counter("coaccel_swap_confirmed_total", "Versions that were confirmed.", mine,
                static_cast<double>(s.confirmed));
    out.counter("coaccel_swap_overdue_total", "Versions whose end took longer than the drain limit.", mine,
                static_cast<double>(s.overdue));
    out.gauge("coaccel_swap_current_version", "The number of the version that answers requests; 0: none.", mine,
              static_cast<double>(s.current));
    using serve::version_state;
    constexpr std::array states{version_state::waiting, version_state::loading,  version_state::warming_up,
                                version_state::current, version_state::previous, version_state::draining,
                                version_state::closing, version_state::closed};
    std::array<int, states.size()> in_state{};
    for (const serve::version_stats& v : s.versions) {
        ++in_state[static_cast<std::size_t>(v.state)];
        // The number tells two loads of the same name apart.
        out.gauge("coaccel_swap_version_in_flight", "Requests that a version has.",
                  {{"swap", name}, {"version", v.name}, {"number", std::to_string(v.version)}},
                  static_cast<double>(v.in_flight));
    }
    for (const version_state v : states)
        out.gauge("coaccel_swap_versions", "Versions that exist, by state.",
                  {{"swap", name}, {"state", std::string(to_string(v))}}, in_state[static_cast<std::size_t>(v)]);
}

} // namespace

telemetry::registration report(const telemetry::registry& where, const hot_swap_ptr& core)
{
    return where.add_source([core](telemetry::metric_writer& out) { write(out, core->name(), core->stats()); });
}

} // namespace coaccel::detail
