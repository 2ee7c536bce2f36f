#include "server/http/tenants.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace coaccel::server {
namespace {

constexpr std::string_view scheme = "Bearer ";

serve::tenant_options share_of(const tenant_limits& t)
{
    serve::tenant_options o;
    o.weight = t.weight;
    o.minimum_share = t.minimum_share;
    o.max_queued = t.max_queued;
    if (t.max_running > 0)
        o.max_running = t.max_running;
    return o;
}

serve::rate_limit rate_of(const tenant_limits& t)
{
    serve::rate_limit r;
    r.rate = t.rate;
    r.burst = t.burst > 0 ? t.burst : t.rate;
    return r;
}

/// Takes as long for a wrong secret as for the right one.
bool is_same_secret(std::string_view given, std::string_view secret) noexcept
{
    // Volatile, so that the compiler cannot end the loop at the first difference.
    volatile unsigned char difference = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
        difference = static_cast<unsigned char>(difference | (given[i] ^ expected));
    }
    return difference == 0;
}

/// As many turns as fill two batches on each device: with fewer, batches stay small; with more, requests of all tenants
/// wait in the batcher, which does not know tenants.
std::uint64_t turns_of(const server_options& options) noexcept
{
    const auto batch_of = [](const model_options& m) -> std::uint64_t { return m.max_batch > 0 ? m.max_batch : 64; };
    std::uint64_t largest = batch_of(options.model_defaults);
    for (const auto& [name, m] : options.models)
        largest = std::max(largest, batch_of(m));
    return 2 * std::max<std::uint64_t>(options.devices.size(), 1) * largest;
}

} // namespace

result<tenants> tenants::create(const asio::any_io_executor& ex, const server_options& options,
                                const telemetry::registry& metrics)
{
    tenants made;
    made.anonymous_ = options.anonymous;
    made.anonymous_name_ = "anonymous";
    const bool limits_anonymous = options.anonymous && options.anonymous_limits != tenant_limits();
    if (options.tenants.empty() && !limits_anonymous)
        return made;
    while (options.tenants.contains(made.anonymous_name_))
        made.anonymous_name_ += '_';
    serve::fair_share_options shares;
    serve::rate_limiter_options rates;
    shares.name = rates.name = "tenants";
    shares.max_running = turns_of(options);
    const auto add = [&](const std::string& name, const tenant_limits& t) {
        shares.tenants.emplace(name, share_of(t));
        made.limited_.emplace(name, t.rate > 0);
        if (t.rate > 0)
            rates.tenants.emplace(name, rate_of(t));
    };
    for (const auto& [name, t] : options.tenants) {
        made.by_key_.emplace(t.api_key, name);
        add(name, t);
    }
    if (options.anonymous)
        add(made.anonymous_name_, options.anonymous_limits);
    BOOST_OUTCOME_TRY(made.share_, serve::fair_share::create(ex, shares));
    BOOST_OUTCOME_TRY(made.rates_, serve::rate_limiter::create(ex, rates));
    made.share_metrics_ = made.share_.report_to(metrics);
    made.rate_metrics_ = made.rates_.report_to(metrics);
    return made;
}

const std::string* tenants::identify(std::string_view api_key, std::string_view authorization) const noexcept
{
    if (api_key.empty() && authorization.size() > scheme.size() &&
        std::ranges::equal(authorization.substr(0, scheme.size()), scheme, [](char a, char b) {
            return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b) ||
                   (b >= 'A' && b <= 'Z' && b - 'A' + 'a' == a);
        }))
        api_key = authorization.substr(scheme.size());
    // Without tenants a key means nothing.
    if (api_key.empty() || (by_key_.empty() && anonymous_))
        return anonymous_ ? &anonymous_name_ : nullptr;
    // All keys are compared: the time tells nothing about them.
    const std::string* found = nullptr;
    for (const auto& [key, name] : by_key_)
        found = is_same_secret(api_key, key) ? &name : found;
    return found;
}

result<serve::rate_decision> tenants::may_send(const std::string& tenant) const
{
    const auto found = limited_.find(tenant);
    if (found == limited_.end() || !found->second)
        return serve::rate_decision{true, {}};
    return rates_.try_acquire(tenant);
}

} // namespace coaccel::server
