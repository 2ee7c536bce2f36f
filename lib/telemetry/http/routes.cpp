#include "telemetry/http/routes.hpp"

#include "telemetry/metric_names.hpp"
#include "telemetry/page/page.hpp"

#include <coaccel/telemetry/exposition.hpp>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>

namespace coaccel::detail {
namespace {

http_route route_of(std::string_view target) noexcept
{
    const auto path = target.substr(0, target.find('?'));
    if (path == "/")
        return http_route::page;
    if (path == "/metrics")
        return http_route::metrics;
    if (path == "/healthz")
        return http_route::health;
    if (path == "/readyz")
        return http_route::ready;
    if (path == "/trace")
        return http_route::trace;
    if (path == "/debug/state")
        return http_route::state;
    return http_route::unknown;
}

bool is_public(http_route route) noexcept
{
    return route == http_route::page || route == http_route::health;
}

char lower(char c) noexcept
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

} // namespace

bool has_token(std::string_view authorization, std::string_view token) noexcept
{
    constexpr std::string_view scheme = "bearer ";
    if (authorization.size() < scheme.size() ||
        !std::ranges::equal(authorization.substr(0, scheme.size()), scheme, {}, lower))
        return false;
    authorization.remove_prefix(scheme.size());
    // Volatile, so that the compiler cannot end the loop at the first difference.
    volatile unsigned char difference = authorization.size() == token.size() ? 0 : 1;
    for (std::size_t i = 0; i < authorization.size(); ++i) {
        const char expected = token.empty() ? '\0' : token[i % token.size()];
        difference = static_cast<unsigned char>(difference | (authorization[i] ^ expected));
    }
    return difference == 0;
}

bool is_local_host(std::string_view host) noexcept
{
    if (host.empty())
        return true;
    std::string_view name = host, port;
    if (host.front() == '[') {
        const auto end = host.find(']');
        if (end == host.npos)
            return false;
        name = host.substr(1, end - 1);
        port = host.substr(end + 1);
        if (!port.empty() && port.front() != ':')
            return false;
    } else if (const auto colon = host.find(':'); colon != host.npos) {
        name = host.substr(0, colon);
        port = host.substr(colon);
    }
    if (port.find_first_not_of("0123456789", 1) != port.npos)
        return false;
    if (std::ranges::equal(name, std::string_view("localhost"), {}, lower))
        return true;
    boost::system::error_code ec;
    // The longest address, with a scope, is much shorter.
    std::array<char, 128> text{};
    if (name.size() >= text.size())
        return false;
    std::ranges::copy(name, text.begin());
    const auto address = boost::asio::ip::make_address(text.data(), ec);
    return !ec && address.is_v6() == (host.front() == '[');
}

http_route choose_route(const http_question& asked, std::string_view token) noexcept
{
    const http_route route = route_of(asked.target);
    if (!token.empty() && !is_public(route) && !has_token(asked.authorization, token))
        return http_route::unauthorized;
    if (route == http_route::unknown)
        return route;
    return asked.method == "GET" || asked.method == "HEAD" ? route : http_route::wrong_method;
}

http_reply plain_reply(http_route route)
{
    switch (route) {
    case http_route::health: return {.body = "ok\n"};
    case http_route::wrong_method: return {.status = 405, .body = "only GET and HEAD\n"};
    case http_route::unauthorized: return {.status = 401, .body = "the token is missing or wrong\n"};
    case http_route::wrong_host: return {.status = 421, .body = "the field Host must be localhost or an IP address\n"};
    default: return {.status = 404, .body = "no such path\n"};
    }
}

http_reply ready_reply(const std::vector<telemetry::device_sample>& devices)
{
    http_reply reply;
    for (const auto& d : devices) {
        const device_state state = d.status.state;
        if (state == device_state::ready || state == device_state::busy)
            continue;
        reply.status = 503;
        reply.body += "device \"" + clean_text(d.name) + "\" is " + std::string(to_string(state));
        if (d.status.reason)
            reply.body += ": " + clean_text(d.status.reason.message());
        reply.body += '\n';
    }
    if (reply.status == 200)
        reply.body = "ready\n";
    return reply;
}

http_reply page_reply()
{
    return {.content_type = "text/html; charset=utf-8", .body = std::string(live_page())};
}

http_reply collected_reply(http_route route, std::string_view accept, const error_code& ec,
                           const telemetry::snapshot& all)
{
    if (ec)
        return {.status = 503, .body = "the registry did not answer: " + ec.message() + "\n"};
    if (route == http_route::state)
        return {.content_type = "application/json", .body = telemetry::to_json(all)};
    const auto format = telemetry::choose_format(accept);
    return {.content_type = telemetry::content_type(format), .body = telemetry::to_text(all, format)};
}

} // namespace coaccel::detail
