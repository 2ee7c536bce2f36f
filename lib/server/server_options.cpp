#include "core/option_check.hpp"

#include <coaccel/server/server_options.hpp>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace coaccel::server {
namespace {

constexpr const char* one_or_more = "it must be at least 1";

bool is_token(std::string_view text) noexcept
{
    return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

error_code named(std::string_view kind, std::string_view name, const error_code& ec)
{
    if (!ec)
        return ec;
    return make_error_with_message(errc::invalid_option,
                                   std::string(kind) + " " + std::string(name) + ": " + ec.message());
}

error_code check_limits(const connection_limits& l) noexcept
{
    return detail::check_options({
        {l.max_connections >= 1, "max_connections", l.max_connections, one_or_more},
        {l.max_body_bytes >= 1024 && l.max_body_bytes <= std::size_t(2) << 30, "max_body_bytes", l.max_body_bytes,
         "it must be from 1 KiB to 2 GiB"},
        {l.max_total_body_bytes >= 1024, "max_total_body_bytes", l.max_total_body_bytes, "it must be at least 1 KiB"},
        {l.max_header_bytes >= 256 && l.max_header_bytes <= std::size_t(1) << 20, "max_header_bytes",
         l.max_header_bytes, "it must be from 256 bytes to 1 MiB"},
        {l.idle_timeout.count() > 0, "idle_timeout", l.idle_timeout, detail::above_zero},
        {l.header_timeout.count() > 0, "header_timeout", l.header_timeout, detail::above_zero},
        {l.transfer_timeout.count() > 0, "transfer_timeout", l.transfer_timeout, detail::above_zero},
        {l.request_timeout.count() > 0, "request_timeout", l.request_timeout, detail::above_zero},
        {l.max_request_timeout >= l.request_timeout, "max_request_timeout", l.max_request_timeout,
         "it must not be below request_timeout"},
    });
}

error_code check_tenant(const tenant_limits& t)
{
    if (auto ec = detail::check_options({
            {t.weight >= 1 && t.weight <= 1'000'000, "weight", t.weight, "it must be from 1 to 1000000"},
            // Written so that NaN is refused.
            {t.minimum_share >= 0 && t.minimum_share <= 0.9, "minimum_share", t.minimum_share,
             "it must be from 0 to 0.9"},
            {t.rate <= 1'000'000'000'000, "rate", t.rate, "it must be at most 10^12"},
            {t.burst <= 1'000'000'000'000, "burst", t.burst, "it must be at most 10^12"},
            {t.burst == 0 || t.rate != 0, "burst", t.burst, "it has no meaning without rate"},
            {t.max_queued >= 1, "max_queued", t.max_queued, one_or_more},
        }))
        return ec;
    if (!is_token(t.api_key))
        return detail::option_error("api_key has other characters than printable ASCII characters without spaces");
    return {};
}

error_code check_model(const model_options& m, std::size_t devices)
{
    if (auto ec = detail::check_options({
            {m.max_delay.count() >= 0, "max_delay", m.max_delay, detail::not_negative},
            {m.instances >= 1 && m.instances <= 64, "instances", m.instances, "it must be from 1 to 64"},
            {m.replicas <= devices, "replicas", m.replicas, "there are fewer devices"},
            {m.max_queued >= 1, "max_queued", m.max_queued, one_or_more},
            {m.versions.how <= version_policy::rule::listed, "versions", m.versions.how, detail::an_enumerator},
            {m.versions.how != version_policy::rule::latest || m.versions.count >= 1, "versions", m.versions.count,
             "at least one version must be loaded"},
        }))
        return ec;
    if (m.versions.how != version_policy::rule::listed)
        return {};
    if (m.versions.list.empty())
        return detail::option_error("versions is an empty list");
    if (m.versions.list.front() == 0)
        return detail::option_error("versions has the number 0; versions are counted from 1");
    if (std::ranges::adjacent_find(m.versions.list, std::ranges::greater_equal()) != m.versions.list.end())
        return detail::option_error("versions must be ascending, each once");
    return {};
}

error_code check_tenants(const server_options& o)
{
    if (auto ec = named("tenant", "*", check_tenant(o.anonymous_limits)))
        return ec;
    if (!o.anonymous_limits.api_key.empty())
        return detail::option_error("tenant *: api_key is not empty; it is for requests without one");
    if (!o.anonymous && o.tenants.empty())
        return detail::option_error("anonymous is no and there is no tenant: every request would be refused");
    std::map<std::string_view, std::string_view> keys;
    double minimum = o.anonymous_limits.minimum_share;
    for (const auto& [name, t] : o.tenants) {
        if (auto ec = named("tenant", name, check_tenant(t)))
            return ec;
        if (name.empty())
            return detail::option_error("a tenant has an empty name");
        if (t.api_key.empty())
            return named("tenant", name, detail::option_error("api_key is empty"));
        if (t.api_key == o.telemetry_token)
            return named("tenant", name, detail::option_error("api_key is the same as telemetry_token"));
        const auto [other, is_new] = keys.emplace(t.api_key, name);
        if (!is_new)
            return named(
                "tenant", name,
                detail::option_error(("api_key is the same as that of tenant " + std::string(other->second)).c_str()));
        minimum += t.minimum_share;
    }
    return detail::check_options(
        {{minimum <= 0.9, "minimum_share", minimum, "for all tenants together it must be at most 0.9"}});
}

error_code check_models(const server_options& o)
{
    // Without devices there is the default one.
    const auto devices = std::max<std::size_t>(o.devices.size(), 1);
    if (auto ec = named("model", "*", check_model(o.model_defaults, devices)))
        return ec;
    for (const auto& [name, m] : o.models) {
        if (name.empty())
            return detail::option_error("a model has an empty name");
        if (auto ec = named("model", name, check_model(m, devices)))
            return ec;
    }
    return {};
}

error_code check_all(const server_options& o)
{
    error_code bad_address;
    asio::ip::make_address(o.address, bad_address);
    if (bad_address)
        return detail::option_error(("address is \"" + o.address + "\"; it must be an IP address").c_str());
    if (o.model_folder.empty())
        return detail::option_error("model_folder is empty");
    if (o.access_log.empty())
        return detail::option_error("access_log is empty; it must be a file, - or off");
    if (!is_token(o.telemetry_token))
        return detail::option_error(
            "telemetry_token has other characters than printable ASCII characters without spaces");
    if (auto ec = detail::check_options({
            {o.io_threads >= 0 && o.io_threads <= 256, "io_threads", o.io_threads, "it must be from 0 to 256"},
            {o.drain_timeout.count() >= 0, "drain_timeout", o.drain_timeout, detail::not_negative},
            {o.poll_interval.count() == 0 || o.poll_interval >= std::chrono::milliseconds(10), "poll_interval",
             o.poll_interval, "it must be 0 or at least 10 ms"},
            {o.log <= log_level::off, "log", o.log, detail::an_enumerator},
        }))
        return ec;
    if (auto ec = check_limits(o.limits))
        return ec;
    for (std::size_t i = 0; i < o.devices.size(); ++i)
        if (auto ec = named("device", std::to_string(i), o.devices[i].check()))
            return ec;
    if (auto ec = check_models(o))
        return ec;
    return check_tenants(o);
}

} // namespace

error_code server_options::check() const noexcept
{
    try {
        return check_all(*this);
    } catch (...) {
        return errc::invalid_option;
    }
}

} // namespace coaccel::server
