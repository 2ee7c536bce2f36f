#include "client/server_connection.hpp"

#include <boost/asio/co_spawn.hpp>

#include <exception>

namespace coaccel::client {

server_connection::server_connection(const server_address& where, const std::string& key,
                                     std::chrono::nanoseconds timeout)
    : session_(io_.get_executor(), where, key, timeout)
{}

result<http_reply> server_connection::exchange(const http_request& request)
{
    result<http_reply> got;
    std::exception_ptr thrown;
    asio::co_spawn(io_, session_.exchange(request), [&](std::exception_ptr e, result<http_reply> r) {
        thrown = e;
        got = std::move(r);
    });
    io_.restart();
    io_.run();
    if (thrown)
        std::rethrow_exception(thrown);
    return got;
}

std::string encoded_name(std::string_view name)
{
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    constexpr char digits[] = "0123456789ABCDEF";
    std::string text;
    for (const char c : name) {
        if (plain.find(c) != std::string_view::npos) {
            text += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        text += '%';
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

} // namespace coaccel::client
