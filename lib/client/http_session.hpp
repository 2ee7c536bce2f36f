#ifndef COACCEL_CLIENT_HTTP_SESSION_HPP
#define COACCEL_CLIENT_HTTP_SESSION_HPP

#include "client/server_address.hpp"

#include <coaccel/core/result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace coaccel::client {

/// A request to a server.
struct http_request {
    std::string method = "GET";                ///< GET or POST.
    std::string target{};                      ///< From /v2 on.
    std::string body{};                        ///< Only for POST.
    std::optional<std::uint64_t> json_bytes{}; ///< The header field Inference-Header-Content-Length.
};

/// A reply of a server.
struct http_reply {
    int status = 0;                            ///< Such as 200.
    std::string body{};                        ///< JSON, then the elements of binary tensors.
    std::optional<std::uint64_t> json_bytes{}; ///< The header field Inference-Header-Content-Length.
};

/// A connection to a server, which is kept for further requests.
class http_session {
public:
    /// `key`: the API key; empty: none. `timeout`: for the whole exchange of a request, with the
    /// connection, except the search for the address of a name.
    http_session(asio::any_io_executor ex, server_address where, std::string key, std::chrono::nanoseconds timeout);

    /// Sends a request and waits for its reply. A connection that the server has closed since the last reply is made
    /// anew, once.
    ///
    /// Errors: those of the connection; beast::error::timeout.
    /// Lifetimes: session and request live until the end.
    asio::awaitable<result<http_reply>> exchange(const http_request& request);

    /// Connections that were made.
    std::uint64_t connections() const noexcept { return connections_; }

private:
    asio::awaitable<error_code> connect();
    asio::awaitable<error_code> try_exchange(const http_request& request, http_reply& reply);
    void close() noexcept;

    server_address where_;
    std::string key_;
    std::chrono::nanoseconds timeout_;
    boost::beast::tcp_stream stream_;
    boost::beast::flat_buffer buffer_;
    bool open_ = false;
    std::uint64_t connections_ = 0;
};

/// The kind of a failed exchange, such as "connection refused", "timeout" or "connection closed".
std::string failure_kind(const error_code& ec);

} // namespace coaccel::client

#endif
