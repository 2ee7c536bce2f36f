#include <coaccel/serve/rate_limiter.hpp>
#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <string>

namespace coaccel::detail {
namespace {

void write(telemetry::metric_writer& out, const std::string& limiter, const std::string& tenant,
           const serve::rate_counts& c)
{
    const auto outcome = [&](const char* what, std::uint64_t n) {
        out.counter("coaccel_rate_limiter_requests_total", "Requests for tokens that were answered, by outcome.",
                    {{"limiter", limiter}, {"tenant", tenant}, {"outcome", what}}, static_cast<double>(n));
    };
    outcome("allowed", c.allowed);
    outcome("refused", c.refused);
    outcome("cancelled", c.cancelled);
    outcome("expired", c.expired);
    out.gauge("coaccel_rate_limiter_waiting", "Requests that wait for tokens.",
              {{"limiter", limiter}, {"tenant", tenant}}, static_cast<double>(c.waiting));
}

void write(telemetry::metric_writer& out, const std::string& limiter, const serve::rate_limiter_stats& s)
{
    serve::rate_counts others = s.all;
    for (const serve::rate_tenant_stats& t : s.tenants) {
        if (!t.configured)
            continue;
        others.waiting -= t.counts.waiting;
        others.allowed -= t.counts.allowed;
        others.refused -= t.counts.refused;
        others.cancelled -= t.counts.cancelled;
        others.expired -= t.counts.expired;
        write(out, limiter, t.name, t.counts);
        out.gauge("coaccel_rate_limiter_tokens", "Tokens in the bucket of a tenant.",
                  {{"limiter", limiter}, {"tenant", t.name}}, static_cast<double>(t.tokens));
    }
    // No configured tenant has an empty name.
    write(out, limiter, "", others);
    out.gauge("coaccel_rate_limiter_tenants", "Tenants that are remembered.", {{"limiter", limiter}},
              static_cast<double>(s.tenants.size()));
    out.counter("coaccel_rate_limiter_forgotten_total", "Tenants that were forgotten.", {{"limiter", limiter}},
                static_cast<double>(s.forgotten));
}

} // namespace

telemetry::registration report(const telemetry::registry& where, const rate_limiter_ptr& state)
{
    return where.add_source([state](telemetry::metric_writer& out) { write(out, state->name(), state->stats()); });
}

} // namespace coaccel::detail
