#ifndef COACCEL_SERVER_PROTOCOL_STATUS_HPP
#define COACCEL_SERVER_PROTOCOL_STATUS_HPP

#include <coaccel/core/error.hpp>

#include <string_view>

namespace coaccel::server {

/// The status of the reply to a request that has failed.
struct failure_status {
    unsigned status = 500;
    /// For the header field Retry-After, in seconds; 0: none.
    unsigned retry_after = 0;
};

/// By whom is to blame: the client (400), the load (429, 504), the device (503), or the request that has ended its
/// context (500).
failure_status status_of(const error_code& ec) noexcept;

/// "Not Found", for example.
std::string_view reason_of(unsigned status) noexcept;

} // namespace coaccel::server

#endif
