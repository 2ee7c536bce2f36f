#ifndef COACCEL_TELEMETRY_HTTP_ROUTES_HPP
#define COACCEL_TELEMETRY_HTTP_ROUTES_HPP

#include <coaccel/telemetry/snapshot.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::detail {

/// What a request asks for, or why it is refused.
enum class http_route : std::uint8_t {
    page,
    metrics,
    health,
    ready,
    trace,
    state,
    unknown,
    wrong_method,
    unauthorized,
    wrong_host,
};

/// The parts of a request that decide about its reply.
struct http_question {
    std::string_view method;
    std::string_view target;
    std::string_view authorization;
};

/// With an empty token every request is authorized.
COACCEL_DECL http_route choose_route(const http_question& asked, std::string_view token) noexcept;

/// Whether the header field has this token. Its duration depends on the lengths only, not on how much is equal.
COACCEL_DECL bool has_token(std::string_view authorization, std::string_view token) noexcept;

/// Whether the header field Host is absent, "localhost" or an IP address, each with or without a port.
COACCEL_DECL bool is_local_host(std::string_view host) noexcept;

/// A reply without the fields that concern the connection.
struct http_reply {
    unsigned status = 200;
    std::string_view content_type = "text/plain; charset=utf-8";
    std::string body;
};

/// The reply of a route that needs nothing but itself.
COACCEL_DECL http_reply plain_reply(http_route route);

/// 200 if every device can run ops, else 503 with one line for each that cannot.
COACCEL_DECL http_reply ready_reply(const std::vector<telemetry::device_sample>& devices);

/// The live page.
COACCEL_DECL http_reply page_reply();

/// The metrics, in the format that the header field Accept prefers, or the state as JSON; 503 if the collection has
/// failed.
COACCEL_DECL http_reply collected_reply(http_route route, std::string_view accept, const error_code& ec,
                                        const telemetry::snapshot& all);

/// For the header field Content-Security-Policy of the live page: no outside resources, and no other page may frame it.
inline constexpr std::string_view page_policy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

} // namespace coaccel::detail

#endif
