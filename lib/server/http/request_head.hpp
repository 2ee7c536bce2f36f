#ifndef COACCEL_SERVER_HTTP_REQUEST_HEAD_HPP
#define COACCEL_SERVER_HTTP_REQUEST_HEAD_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace coaccel::server {

/// What the server uses of the header of a request.
struct request_head {
    std::string method;
    std::string target;
    std::string host;
    std::string authorization;
    std::string api_key;
    std::string accept;
    std::string origin;
    /// Inference-Header-Content-Length.
    std::optional<std::uint64_t> json_bytes;
    /// X-Request-Timeout-Ms.
    std::optional<std::chrono::milliseconds> timeout;
    bool expects_continue = false;
    bool encoded = false; ///< The body is compressed.
    int version = 11;
    /// Why a field cannot be used; empty: none.
    std::string problem;

    void clear()
    {
        method.clear();
        target.clear();
        host.clear();
        authorization.clear();
        api_key.clear();
        accept.clear();
        origin.clear();
        json_bytes.reset();
        timeout.reset();
        expects_continue = false;
        encoded = false;
        version = 11;
        problem.clear();
    }
};

} // namespace coaccel::server

#endif
