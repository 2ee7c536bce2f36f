#include "server/echo_server.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace coaccel::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

class echo_session : public std::enable_shared_from_this<echo_session> {
public:
    explicit echo_session(tcp::socket socket) : stream_(std::move(socket)) {}

    void read()
    {
        request_ = {};
        stream_.expires_after(std::chrono::seconds(30));
        http::async_read(stream_, buffer_, request_,
                         [self = shared_from_this()](const beast::error_code& ec, std::size_t) {
                             if (!ec)
                                 self->write();
                         });
    }

private:
    void write()
    {
        reply_ = {http::status::ok, request_.version()};
        reply_.set(http::field::content_type, "application/json");
        reply_.keep_alive(request_.keep_alive());
        reply_.body() = std::move(request_.body());
        reply_.prepare_payload();
        http::async_write(stream_, reply_, [self = shared_from_this()](const beast::error_code& ec, std::size_t) {
            if (!ec && self->reply_.keep_alive())
                self->read();
        });
    }

    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    http::request<http::string_body> request_;
    http::response<http::string_body> reply_;
};

} // namespace

echo_server::echo_server(asio::io_context& io) : acceptor_(io, {asio::ip::address_v4::loopback(), 0})
{
    accept();
}

void echo_server::accept()
{
    acceptor_.async_accept([this](const boost::system::error_code& ec, tcp::socket socket) {
        if (ec)
            return;
        boost::system::error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        std::make_shared<echo_session>(std::move(socket))->read();
        accept();
    });
}

} // namespace coaccel::bench
