#include "client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <cstddef>
#include <exception>

namespace demo {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

namespace {

asio::awaitable<void> run_client(tcp::endpoint server, const std::vector<question>& questions, std::size_t next,
                                 tally& counts)
{
    beast::tcp_stream stream(co_await asio::this_coro::executor);
    co_await stream.async_connect(server, asio::use_awaitable);
    stream.socket().set_option(tcp::no_delay(true));
    beast::flat_buffer buffer;
    http::request<http::string_body> request(http::verb::post, "/v2/models/digits/infer", 11);
    request.set(http::field::host, "localhost");
    for (; !counts.stopping; ++next) {
        const question& q = questions[next % questions.size()];
        request.body() = q.body;
        request.prepare_payload();
        const auto begin = tally::clock::now();
        ++counts.sent;
        co_await http::async_write(stream, request, asio::use_awaitable);
        http::response<http::string_body> reply;
        co_await http::async_read(stream, buffer, reply, asio::use_awaitable);
        counts.add_answer(begin);
        if (reply.result() != http::status::ok)
            counts.fail(reply.body());
        else if (!q.is_right(reply.body()))
            ++counts.wrong;
    }
}

} // namespace

void start_clients(const asio::any_io_executor& executor, int count, tcp::endpoint server,
                   const std::vector<question>& questions, tally& counts)
{
    for (int i = 0; i < count; ++i) {
        ++counts.clients_active;
        asio::co_spawn(executor, run_client(server, questions, static_cast<std::size_t>(i), counts),
                       [&](std::exception_ptr e) {
                           --counts.clients_active;
                           counts.clients_broken += e ? 1 : 0;
                       });
    }
}

} // namespace demo
