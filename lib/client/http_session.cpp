#include "client/http_session.hpp"

#include "core/unit_text.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <limits>
#include <utility>

namespace coaccel::client {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr auto as_values = asio::as_tuple(asio::use_awaitable);
constexpr std::uint32_t most_reply_header_bytes = 65536;
constexpr std::uint64_t most_reply_body_bytes = std::uint64_t(4) << 30;

/// The server has closed a connection without a request: it was idle for too long, or the server was restarted.
bool is_stale(const error_code& ec) noexcept
{
    return ec == http::error::end_of_stream || ec == asio::error::eof || ec == asio::error::connection_reset ||
           ec == asio::error::broken_pipe;
}

http::request<http::string_body> make_message(const http_request& request, const server_address& where,
                                              const std::string& key)
{
    http::request<http::string_body> message;
    message.method(request.method == "POST" ? http::verb::post : http::verb::get);
    message.target(where.path + request.target);
    message.version(11);
    message.set(http::field::host, where.text());
    message.set(http::field::user_agent, "coaccel-client/" COACCEL_VERSION_STRING);
    if (!key.empty())
        message.set(http::field::authorization, "Bearer " + key);
    if (request.method == "POST") {
        message.set(http::field::content_type, request.json_bytes ? "application/octet-stream" : "application/json");
        if (request.json_bytes)
            message.set("Inference-Header-Content-Length", std::to_string(*request.json_bytes));
        message.body() = request.body;
        message.prepare_payload();
    }
    return message;
}

} // namespace

std::string failure_kind(const error_code& ec)
{
    if (ec == beast::error::timeout)
        return "timeout";
    if (ec == asio::error::connection_refused)
        return "connection refused";
    if (is_stale(ec) || ec == http::error::partial_message)
        return "connection closed";
    return ec.message();
}

http_session::http_session(asio::any_io_executor ex, server_address where, std::string key,
                           std::chrono::nanoseconds timeout)
    : where_(std::move(where)), key_(std::move(key)), timeout_(timeout), stream_(std::move(ex)),
      buffer_(std::numeric_limits<std::size_t>::max())
{}

void http_session::close() noexcept
{
    error_code ignored;
    stream_.socket().close(ignored);
    buffer_.clear();
    open_ = false;
}

asio::awaitable<error_code> http_session::connect()
{
    asio::ip::tcp::resolver resolver(stream_.get_executor());
    const auto [unresolved, endpoints] = co_await resolver.async_resolve(where_.host, where_.port, as_values);
    if (unresolved)
        co_return unresolved;
    const auto [refused, endpoint] = co_await stream_.async_connect(endpoints, as_values);
    if (refused) {
        close();
        co_return refused;
    }
    error_code ignored;
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    open_ = true;
    ++connections_;
    co_return error_code();
}

asio::awaitable<error_code> http_session::try_exchange(const http_request& request, http_reply& reply)
{
    auto message = make_message(request, where_, key_);
    const auto [not_sent, sent] = co_await http::async_write(stream_, message, as_values);
    // A server that refuses a large body may answer before it has read all of it.
    if (not_sent && not_sent != asio::error::broken_pipe && not_sent != asio::error::connection_reset)
        co_return not_sent;
    http::response_parser<http::string_body> parser;
    parser.header_limit(most_reply_header_bytes);
    parser.body_limit(most_reply_body_bytes);
    const auto [not_read, read] = co_await http::async_read(stream_, buffer_, parser, as_values);
    if (not_read)
        co_return not_read;
    auto& got = parser.get();
    reply.status = got.result_int();
    const auto field = got.find("Inference-Header-Content-Length");
    if (field != got.end()) {
        const auto text = field->value();
        reply.json_bytes = detail::number<std::uint64_t>(std::string_view(text.data(), text.size()));
        if (!reply.json_bytes)
            co_return make_error_with_message(errc::invalid_argument,
                                              "the reply has an Inference-Header-Content-Length that is no number");
    }
    if (not_sent || !got.keep_alive())
        close();
    reply.body = std::move(got.body());
    co_return error_code();
}

asio::awaitable<result<http_reply>> http_session::exchange(const http_request& request)
{
    stream_.expires_after(timeout_);
    http_reply reply;
    for (bool again = true; again;) {
        const bool used_before = open_;
        error_code ec;
        if (!open_)
            ec = co_await connect();
        if (!ec)
            ec = co_await try_exchange(request, reply);
        again = ec && used_before && is_stale(ec);
        if (ec)
            close();
        if (ec && !again)
            co_return ec;
        if (!ec)
            break;
        reply = {};
    }
    stream_.expires_never();
    co_return reply;
}

} // namespace coaccel::client
