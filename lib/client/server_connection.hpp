#ifndef COACCEL_CLIENT_SERVER_CONNECTION_HPP
#define COACCEL_CLIENT_SERVER_CONNECTION_HPP

#include "client/http_session.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace coaccel::client {

/// An http_session for a program that waits for each reply.
class server_connection {
public:
    server_connection(const server_address& where, const std::string& key, std::chrono::nanoseconds timeout);

    /// As http_session::exchange, and waits for it.
    result<http_reply> exchange(const http_request& request);

private:
    asio::io_context io_{1};
    http_session session_;
};

/// The name as a part of a path: characters with a meaning in URLs become %NN.
std::string encoded_name(std::string_view name);

} // namespace coaccel::client

#endif
