// A Beast HTTP server whose handlers await the device: POST /norm with numbers answers with their norm.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

//[http_norm
asio::awaitable<ca::result<float>> norm(ca::device gpu, const std::vector<float>& numbers)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
    const ca::blas::nrm2<float> op{.x = x, .n = x.size()};
    co_return co_await gpu.with(ca::within(1s)).async_exec(op);
}

// The class of the fault says whose fault it is.
http::status status_of(const ca::error_code& ec)
{
    return ec == ca::fault::caller ? http::status::bad_request : http::status::service_unavailable;
}

asio::awaitable<response> answer(ca::device gpu, const request& asked)
{
    response r(http::status::ok, asked.version());
    r.keep_alive(asked.keep_alive());
    if (asked.method() != http::verb::post || asked.target() != "/norm") {
        r.result(http::status::not_found);
    } else {
        std::istringstream text(asked.body());
        std::vector<float> numbers;
        for (float x; text >> x;)
            numbers.push_back(x);
        const auto done = co_await norm(gpu, numbers);
        if (!done)
            r.result(status_of(done.error()));
        r.body() = done ? std::to_string(done.value()) : done.error().message();
    }
    r.prepare_payload();
    co_return r;
}
//]

//[http_session
asio::awaitable<void> session(tcp::socket socket, ca::device gpu)
{
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    for (;;) {
        request asked;
        stream.expires_after(30s);
        co_await http::async_read(stream, buffer, asked, asio::use_awaitable);
        const response reply = co_await answer(gpu, asked);
        co_await http::async_write(stream, reply, asio::use_awaitable);
        if (!reply.keep_alive())
            break;
    }
}

// The server and the device share one io_context; every session shares the device.
asio::awaitable<void> serve(tcp::acceptor& acceptor, ca::device gpu)
{
    for (;;) {
        auto socket = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), session(std::move(socket), gpu), asio::detached);
    }
}
//]

asio::awaitable<response> ask(beast::tcp_stream& stream, std::string target, std::string body)
{
    request asked(http::verb::post, target, 11);
    asked.set(http::field::host, "localhost");
    asked.body() = std::move(body);
    asked.prepare_payload();
    co_await http::async_write(stream, asked, asio::use_awaitable);
    beast::flat_buffer buffer;
    response reply;
    co_await http::async_read(stream, buffer, reply, asio::use_awaitable);
    std::cout << target << ' ' << asked.body() << ": " << reply.result_int() << ' ' << reply.body() << '\n';
    co_return reply;
}

asio::awaitable<bool> client(tcp::endpoint server)
{
    beast::tcp_stream stream(co_await asio::this_coro::executor);
    stream.expires_after(30s);
    co_await stream.async_connect(server, asio::use_awaitable);
    const response five = co_await ask(stream, "/norm", "3 4");
    const response three = co_await ask(stream, "/norm", "1 2 2");
    const response nothing = co_await ask(stream, "/norm", "");
    const response unknown = co_await ask(stream, "/else", "1");
    co_return five.result() == http::status::ok&& five.body() == "5.000000" && three.body() == "3.000000" &&
        nothing.result() == http::status::bad_request&& unknown.result() == http::status::not_found;
}

asio::awaitable<bool> run()
{
    const auto executor = co_await asio::this_coro::executor;
    const ca::device_options options{};
    ca::device gpu = co_await ca::device::async_create(executor, options, asio::use_awaitable);

    // Port 0: the system picks a free one.
    tcp::acceptor acceptor(executor, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    asio::co_spawn(executor, serve(acceptor, gpu), asio::detached);
    const bool right = co_await client(acceptor.local_endpoint());

    acceptor.close();
    co_await gpu.async_shutdown(asio::use_awaitable);
    co_return right;
}

} // namespace

int main()
{
    asio::io_context io;
    bool right = false;
    asio::co_spawn(io, run(), [&](std::exception_ptr e, bool r) {
        right = !e && r;
        io.stop();
    });
    io.run();
    return right ? 0 : 1;
}
