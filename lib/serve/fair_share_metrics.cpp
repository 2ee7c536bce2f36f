#include <coaccel/serve/fair_share.hpp>
#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <chrono>
#include <string>

namespace coaccel::detail {
namespace {

double seconds(std::chrono::nanoseconds t) noexcept
{
    return std::chrono::duration<double>(t).count();
}

void write(telemetry::metric_writer& out, const std::string& share, const std::string& tenant,
           const serve::turn_counts& c)
{
    const telemetry::labels mine{{"share", share}, {"tenant", tenant}};
    const auto outcome = [&](const char* what, std::uint64_t n) {
        out.counter("coaccel_fair_share_requests_total", "Requests that no longer wait for their turn, by outcome.",
                    {{"share", share}, {"tenant", tenant}, {"outcome", what}}, static_cast<double>(n));
    };
    outcome("started", c.started);
    outcome("cancelled", c.cancelled);
    outcome("expired", c.expired);
    outcome("refused", c.refused);
    out.gauge("coaccel_fair_share_queue", "Requests that wait for their turn.", mine, static_cast<double>(c.queued));
    out.gauge("coaccel_fair_share_running", "Turns that have not ended.", mine, static_cast<double>(c.running));
    out.counter("coaccel_fair_share_device_seconds_total", "Device time of ended turns.", mine, seconds(c.device_time));
}

/// What is left of `all` without these tenants.
void subtract(serve::turn_counts& all, const serve::turn_counts& some) noexcept
{
    all.queued -= some.queued;
    all.running -= some.running;
    all.started -= some.started;
    all.cancelled -= some.cancelled;
    all.expired -= some.expired;
    all.refused -= some.refused;
    all.device_time -= some.device_time;
}

void write(telemetry::metric_writer& out, const std::string& share, const serve::fair_share_stats& s)
{
    const telemetry::labels mine{{"share", share}};
    serve::turn_counts others = s.all;
    for (const serve::tenant_stats& t : s.tenants) {
        if (!t.configured)
            continue;
        subtract(others, t.counts);
        write(out, share, t.name, t.counts);
        out.gauge("coaccel_fair_share_weight", "The weight of a tenant.", {{"share", share}, {"tenant", t.name}},
                  t.weight);
        out.gauge("coaccel_fair_share_estimate_seconds", "What the next request of a tenant is expected to take.",
                  {{"share", share}, {"tenant", t.name}}, seconds(t.estimate));
    }
    // No configured tenant has an empty name.
    write(out, share, "", others);
    out.gauge("coaccel_fair_share_tenants", "Tenants that are remembered.", mine,
              static_cast<double>(s.tenants.size()));
    out.counter("coaccel_fair_share_forgotten_total", "Tenants that were forgotten.", mine,
                static_cast<double>(s.forgotten));
    out.histogram("coaccel_fair_share_queue_seconds", "From the arrival of a request to its turn.", mine, s.queue_time);
}

} // namespace

telemetry::registration report(const telemetry::registry& where, const fair_share_ptr& state)
{
    return where.add_source([state](telemetry::metric_writer& out) { write(out, state->name(), state->stats()); });
}

} // namespace coaccel::detail
