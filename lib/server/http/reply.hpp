#ifndef COACCEL_SERVER_HTTP_REPLY_HPP
#define COACCEL_SERVER_HTTP_REPLY_HPP

#include <coaccel/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coaccel::server {

/// A reply without the fields that concern the connection.
struct reply {
    unsigned status = 200;
    std::string_view content_type = "application/json";
    std::string body{};
    std::int64_t retry_after = 0;    ///< Seconds; 0: no such field.
    std::string_view allow{};        ///< For status 405.
    std::string_view authenticate{}; ///< For status 401.
    std::string_view policy{};       ///< Content-Security-Policy, for pages.
    bool page = false;               ///< A page or metrics, which browsers must not keep.
};

/// A reply with an error document.
reply error_reply(unsigned status, std::string_view message);
/// The reply to a request that has ended with this error.
reply failure_reply(const error_code& ec);

/// Whether a connection stays open after a reply.
enum class after_reply : std::uint8_t { keep, close };

/// Appends the status line and the header fields. `body_bytes`: what follows, apart from interim texts.
void append_head(std::string& out, const reply& r, int http_version, after_reply then, std::size_t body_bytes,
                 std::optional<std::size_t> json_bytes = {});

} // namespace coaccel::server

#endif
