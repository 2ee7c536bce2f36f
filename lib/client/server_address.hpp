#ifndef COACCEL_CLIENT_SERVER_ADDRESS_HPP
#define COACCEL_CLIENT_SERVER_ADDRESS_HPP

#include <coaccel/core/result.hpp>

#include <string>
#include <string_view>

namespace coaccel::client {

/// Where a server is.
struct server_address {
    std::string host = "127.0.0.1"; ///< A name or an IP address, without brackets.
    std::string port = "8000";      ///< A number.
    std::string path{}; ///< Before /v2, for a server behind a proxy; empty, or with a slash at its beginning.

    /// For messages and the header field Host: "127.0.0.1:8000", "[::1]:8000".
    std::string text() const;

    bool operator==(const server_address&) const = default;
};

/// Parses "http://host:8000/path". The scheme, the port and the path may be missing.
///
/// Errors: errc::invalid_argument with the reason, for example that https is not supported.
/// Exceptions: std::bad_alloc.
result<server_address> parse_address(std::string_view url);

} // namespace coaccel::client

#endif
