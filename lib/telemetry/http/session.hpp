#ifndef COACCEL_TELEMETRY_HTTP_SESSION_HPP
#define COACCEL_TELEMETRY_HTTP_SESSION_HPP

#include "telemetry/http/routes.hpp"
#include "telemetry/http/server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace coaccel::detail {

/// One connection: reads requests and writes replies until the client or the server ends it.
class http_session {
public:
    http_session(std::shared_ptr<http_server> server, asio::ip::tcp::socket socket);
    http_session(const http_session&) = delete;
    http_session& operator=(const http_session&) = delete;
    ~http_session();

    asio::awaitable<void> run();

    /// Ends the session if it is waiting for a request.
    void end_if_idle();
    /// Closes the connection.
    void close();
    /// Since when it waits for a request, as a number that grows with time; nothing while it has one or is closed.
    std::optional<std::uint64_t> idle_since() const noexcept
    {
        return reading_ && !closed_ ? std::optional(reading_since_) : std::nullopt;
    }

private:
    struct request;

    asio::awaitable<bool> serve_one();
    asio::awaitable<void> drain();
    asio::awaitable<http_reply> reply_to(http_route route, std::string accept);
    asio::awaitable<bool> write(http_reply reply, const request& asked);

    const std::shared_ptr<http_server> server_;
    boost::beast::tcp_stream stream_;
    boost::beast::flat_buffer buffer_;
    bool reading_ = false;
    bool closed_ = false;
    std::uint64_t reading_since_ = 0;
};

} // namespace coaccel::detail

#endif
