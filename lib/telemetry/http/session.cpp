#include "telemetry/http/session.hpp"

#include "telemetry/http/shared_collection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace coaccel::detail {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

using request_parser = http::request_parser<http::string_body>;

constexpr auto as_awaitable = asio::as_tuple(asio::use_awaitable);

/// The reply to a request that cannot be read, or 0 if the connection has failed.
unsigned status_of(const error_code& ec) noexcept
{
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
        return 431;
    if (ec == http::error::body_limit)
        return 413;
    if (ec == http::error::end_of_stream || ec == http::error::partial_message ||
        ec.category() != make_error_code(http::error::bad_method).category())
        return 0;
    return 400;
}

std::string_view text_of(unsigned status) noexcept
{
    switch (status) {
    case 413: return "the body is too long\n";
    case 431: return "the header is too long\n";
    default: return "not a valid request\n";
    }
}

/// A client may send several fields.
std::string accepted_types(const request_parser::value_type& message)
{
    std::string all;
    const auto [first, last] = message.equal_range(http::field::accept);
    for (auto field = first; field != last; ++field)
        all.append(all.empty() ? "" : ",").append(field->value());
    return all;
}

} // namespace

struct http_session::request {
    unsigned version = 11;
    bool keep_alive = false;
    bool head = false;
    http_route route = http_route::unknown;
};

http_session::http_session(std::shared_ptr<http_server> server, asio::ip::tcp::socket socket)
    : server_(std::move(server)), stream_(std::move(socket)),
      buffer_(server_->options().max_header_bytes + server_->options().max_body_bytes + 4096)
{
    server_->add(*this);
}

http_session::~http_session()
{
    // Before the server learns of the end, which may complete a stop.
    stream_.close();
    server_->remove(*this);
}

void http_session::end_if_idle()
{
    // Not a close: a request that has arrived completely is still read and gets its reply.
    error_code ignored;
    if (reading_)
        stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_receive, ignored);
}

void http_session::close()
{
    closed_ = true;
    stream_.close();
}

asio::awaitable<void> http_session::run()
{
    for (bool open = true; open && !server_->stopping();)
        open = co_await serve_one();
    error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

asio::awaitable<bool> http_session::serve_one()
{
    request_parser parser;
    parser.header_limit(static_cast<std::uint32_t>(server_->options().max_header_bytes));
    parser.body_limit(server_->options().max_body_bytes);
    stream_.expires_after(server_->options().read_timeout);
    reading_since_ = server_->next_number();
    reading_ = true;
    const auto [ec, bytes] = co_await http::async_read(stream_, buffer_, parser, as_awaitable);
    reading_ = false;
    request asked;
    if (ec) {
        const unsigned status = status_of(ec);
        if (status == 0)
            co_return false;
        http_reply refusal;
        refusal.status = status;
        refusal.body = text_of(status);
        if (co_await write(std::move(refusal), asked))
            co_await drain();
        co_return false;
    }
    const auto& message = parser.get();
    asked.version = message.version();
    asked.keep_alive = message.keep_alive();
    asked.head = message.method() == http::verb::head;
    http_question question;
    question.method = message.method_string();
    question.target = message.target();
    question.authorization = message[http::field::authorization];
    const std::string_view host = message[http::field::host];
    asked.route =
        server_->serves_host(host) ? choose_route(question, server_->options().token) : http_route::wrong_host;
    // A client without the token must not keep a connection from others.
    asked.keep_alive = asked.keep_alive && asked.route != http_route::unauthorized;
    http_reply reply = co_await reply_to(asked.route, accepted_types(message));
    const bool written = co_await write(std::move(reply), asked);
    co_return written&& asked.keep_alive;
}

// A socket that is closed with unread data resets the connection, and the client may lose the reply.
asio::awaitable<void> http_session::drain()
{
    error_code ec;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
    stream_.expires_after(std::min<std::chrono::nanoseconds>(server_->options().read_timeout, std::chrono::seconds(1)));
    std::array<char, 4096> unread;
    reading_since_ = server_->next_number();
    reading_ = true;
    for (std::size_t rest = 1 << 20; !ec && rest > unread.size();) {
        const auto [failed, bytes] = co_await stream_.async_read_some(asio::buffer(unread), as_awaitable);
        ec = failed;
        rest -= bytes;
    }
    reading_ = false;
}

asio::awaitable<http_reply> http_session::reply_to(http_route route, std::string accept)
{
    http_reply reply;
    switch (route) {
    case http_route::page: reply = page_reply(); break;
    case http_route::ready: reply = ready_reply(server_->metrics().devices()); break;
    case http_route::metrics:
    case http_route::state: {
        const auto got = co_await server_->collect();
        if (!got) {
            reply.status = 503;
            reply.body = "the registry did not answer in time\n";
        } else {
            reply = collected_reply(route, accept, got->ec, got->all);
        }
        break;
    }
    case http_route::trace:
        if (!server_->options().trace) {
            reply = plain_reply(route);
            break;
        }
        try {
            reply.content_type = "application/json";
            reply.body = server_->options().trace();
        } catch (const std::exception& e) {
            reply.status = 500;
            reply.content_type = "text/plain; charset=utf-8";
            reply.body = e.what();
        } catch (...) {
            reply.status = 500;
            reply.content_type = "text/plain; charset=utf-8";
            reply.body = "the trace failed\n";
        }
        break;
    default: reply = plain_reply(route); break;
    }
    co_return reply;
}

asio::awaitable<bool> http_session::write(http_reply reply, const request& asked)
{
    http::response<http::string_body> message(static_cast<http::status>(reply.status), asked.version);
    message.set(http::field::server, "coaccel");
    message.set(http::field::content_type, beast::string_view(reply.content_type.data(), reply.content_type.size()));
    message.set(http::field::cache_control, "no-store");
    message.set("X-Content-Type-Options", "nosniff");
    message.set("Referrer-Policy", "no-referrer");
    if (asked.route == http_route::page)
        message.set("Content-Security-Policy", beast::string_view(page_policy.data(), page_policy.size()));
    if (reply.status == 405)
        message.set(http::field::allow, "GET, HEAD");
    if (reply.status == 401)
        message.set(http::field::www_authenticate, "Bearer");
    message.keep_alive(asked.keep_alive && !server_->stopping());
    message.content_length(reply.body.size());
    if (!asked.head)
        message.body() = std::move(reply.body);
    stream_.expires_after(server_->options().write_timeout);
    http::response_serializer<http::string_body> serializer(message);
    serializer.split(asked.head);
    error_code ec;
    if (asked.head) {
        const auto [failed, bytes] = co_await http::async_write_header(stream_, serializer, as_awaitable);
        ec = failed;
    } else {
        const auto [failed, bytes] = co_await http::async_write(stream_, serializer, as_awaitable);
        ec = failed;
    }
    co_return !ec;
}

} // namespace coaccel::detail
