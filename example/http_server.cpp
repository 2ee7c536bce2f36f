// A Beast HTTP server whose handlers await the device: POST /norm with numbers returns their norm. SIGINT or SIGTERM
// ends it after the requests that have arrived.
#include <coaccel/coaccel.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <set>
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
    const auto limited = gpu.with(ca::within(1s)); // one deadline for the upload and the op
    BOOST_OUTCOME_CO_TRY(auto x, co_await limited.async_upload(numbers));
    co_return co_await limited.async_exec(ca::blas::nrm2<float>{.x = x, .n = x.size()});
}
//]

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

// The sessions share the device. One thread runs the io_context of the server and the device, so there are no locks.
class server {
public:
    server(ca::device gpu, const tcp::endpoint& where)
        : gpu_(std::move(gpu)), acceptor_(gpu_.get_executor(), where),
          ended_(gpu_.get_executor(), asio::steady_timer::time_point::max())
    {
        start(accept());
    }

    server(const server&) = delete;

    tcp::endpoint address() const { return acceptor_.local_endpoint(); }

    //[http_stop
    // Refuses new connections, closes those without a complete request, and waits until the others have their replies.
    asio::awaitable<void> end()
    {
        ending_ = true;
        acceptor_.close();
        for (beast::tcp_stream* stream : reading_)
            stream->cancel();
        while (running_ > 0)
            co_await ended_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    //]

private:
    //[http_session
    void start(asio::awaitable<void> task)
    {
        ++running_;
        asio::co_spawn(gpu_.get_executor(), std::move(task), [this](std::exception_ptr) {
            if (--running_ == 0)
                ended_.cancel();
        });
    }

    asio::awaitable<void> accept()
    {
        while (!ending_) {
            auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
            start(session(std::move(socket)));
        }
    }

    asio::awaitable<void> session(tcp::socket socket)
    {
        beast::tcp_stream stream(std::move(socket));
        beast::flat_buffer buffer;
        while (!ending_) {
            request asked;
            stream.expires_after(30s);
            reading_.insert(&stream);
            const auto [ec, size] =
                co_await http::async_read(stream, buffer, asked, asio::as_tuple(asio::use_awaitable));
            reading_.erase(&stream);
            if (ec)
                break;
            const response reply = co_await answer(gpu_, asked);
            co_await http::async_write(stream, reply, asio::use_awaitable);
            if (!reply.keep_alive())
                break;
        }
    }
    //]

    ca::device gpu_;
    tcp::acceptor acceptor_;
    asio::steady_timer ended_; // cancelled by the last coroutine
    std::set<beast::tcp_stream*> reading_;
    int running_ = 0;
    bool ending_ = false;
};

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

asio::awaitable<void> run(bool& right)
{
    const auto executor = co_await asio::this_coro::executor;
    const ca::device_options options{};
    ca::device gpu = co_await ca::device::async_create(executor, options, asio::use_awaitable);
    asio::signal_set signals(executor, SIGINT, SIGTERM);
    const tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0); // the system chooses a free port
    server http_server(gpu, any_port);

    tcp::socket idle(executor); // sends nothing; the server closes the connection when it ends
    const auto [refused] = co_await idle.async_connect(http_server.address(), asio::as_tuple(asio::use_awaitable));
    asio::co_spawn(executor, client(http_server.address()),
                   [&right, connected = !refused](std::exception_ptr e, bool r) {
                       right = !e && r && connected;
                       std::raise(SIGTERM);
                   });

    //[http_end
    co_await signals.async_wait(asio::use_awaitable);
    signals.clear(); // a second signal ends the process at once
    co_await http_server.end();
    co_await gpu.async_shutdown(asio::use_awaitable);
    //]
}

} // namespace

int main()
{
    bool right = false;
    bool ended = false;
    asio::io_context io;
    asio::co_spawn(io, run(right), [&](std::exception_ptr e) { ended = !e; });
    io.run();
    return right && ended ? 0 : 1;
}
