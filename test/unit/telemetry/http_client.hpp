#ifndef COACCEL_TEST_UNIT_TELEMETRY_HTTP_CLIENT_HPP
#define COACCEL_TEST_UNIT_TELEMETRY_HTTP_CLIENT_HPP

#include <boost/asio.hpp>

#include <cstdint>
#include <string>

namespace test {

namespace asio = boost::asio;
using asio::ip::tcp;

inline asio::awaitable<tcp::socket> connect_to(std::uint16_t port)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    const tcp::endpoint where(asio::ip::address_v4::loopback(), port);
    co_await socket.async_connect(where, asio::use_awaitable);
    co_return socket;
}

/// A connection that the server has not necessarily accepted yet.
inline tcp::socket connected(asio::io_context& io, std::uint16_t port)
{
    tcp::socket socket(io);
    socket.connect({asio::ip::address_v4::loopback(), port});
    return socket;
}

inline asio::awaitable<void> send(tcp::socket& socket, std::string text)
{
    // A server that has closed the connection may refuse the rest.
    co_await asio::async_write(socket, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
}

/// Everything until the server closes the connection.
inline asio::awaitable<std::string> read_all(tcp::socket& socket)
{
    std::string text;
    co_await asio::async_read(socket, asio::dynamic_buffer(text), asio::as_tuple(asio::use_awaitable));
    co_return text;
}

/// Sends text on a new connection and returns everything that comes back.
inline asio::awaitable<std::string> exchange(std::uint16_t port, std::string text)
{
    tcp::socket socket = co_await connect_to(port);
    co_await send(socket, std::move(text));
    co_return co_await read_all(socket);
}

/// A request after which the server closes the connection.
inline std::string last_request(const std::string& method, const std::string& target, const std::string& fields = {})
{
    return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields + "\r\n";
}

inline int status_of(const std::string& reply)
{
    return reply.starts_with("HTTP/1.1 ") ? std::stoi(reply.substr(9, 3)) : 0;
}

inline std::string body_of(const std::string& reply)
{
    const auto end = reply.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : reply.substr(end + 4);
}

inline bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

inline int occurrences(const std::string& text, const std::string& part)
{
    int n = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++n;
    return n;
}

} // namespace test

#endif
