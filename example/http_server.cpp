// A Beast HTTP server whose requests share batches: POST /score with 16 numbers returns their score. A second port has
// the metrics and the live page. SIGINT or SIGTERM ends it after the requests that have arrived.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>
#include <coaccel/telemetry/http_endpoint.hpp>
#include <coaccel/telemetry/registry.hpp>

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

#include <array>
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
namespace serve = coaccel::serve;
namespace telemetry = coaccel::telemetry;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

constexpr std::size_t features = 16;

// score = weights * x, for this many items.
ca::result<serve::batch_plan> scorer(std::uint32_t rows)
{
    ca::plan_builder b("score" + std::to_string(rows));
    const auto x = b.input<float>(features * rows, "x");
    const auto w = b.constant<float>(std::vector<float>(features, 0.5f), "w");
    const auto y = b.output<float>(rows, "y");
    b.add(ca::blas::gemm<float>{.a = w, .b = x, .c = y, .m = 1, .n = rows, .k = features});
    BOOST_OUTCOME_TRY(auto described, b.finish());
    return serve::batch_plan{rows, std::move(described)};
}

ca::result<serve::batch_model> make_model()
{
    BOOST_OUTCOME_TRY(auto one, scorer(1));
    BOOST_OUTCOME_TRY(auto many, scorer(64));
    return serve::batch_model::create({one, many});
}

//[http_score
// Requests that arrive while a batch runs share the next one.
asio::awaitable<ca::result<float>> score(serve::dynamic_batcher scores, const std::vector<float>& item)
{
    std::array<float, 1> y{};
    const auto limited = scores.with(ca::within(1s));
    BOOST_OUTCOME_CO_TRYV(co_await limited.async_run(ca::from(item), ca::to(y)));
    co_return y[0];
}
//]

// The class of the fault says whose fault it is.
http::status status_of(const ca::error_code& ec)
{
    return ec == ca::fault::caller ? http::status::bad_request : http::status::service_unavailable;
}

asio::awaitable<response> answer(serve::dynamic_batcher scores, const request& asked)
{
    response r(http::status::ok, asked.version());
    r.keep_alive(asked.keep_alive());
    if (asked.method() != http::verb::post || asked.target() != "/score") {
        r.result(http::status::not_found);
    } else {
        std::istringstream text(asked.body());
        std::vector<float> item;
        for (float x; text >> x;)
            item.push_back(x);
        const auto done = co_await score(scores, item);
        if (!done)
            r.result(status_of(done.error()));
        r.body() = done ? std::to_string(done.value()) : done.error().message();
    }
    r.prepare_payload();
    co_return r;
}

// The sessions share the batcher. One thread runs the io_context of the server and the device, so there are no locks.
class server {
public:
    server(serve::dynamic_batcher scores, const tcp::endpoint& where)
        : scores_(std::move(scores)), acceptor_(scores_.get_executor(), where),
          ended_(scores_.get_executor(), asio::steady_timer::time_point::max())
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
        asio::co_spawn(scores_.get_executor(), std::move(task), [this](std::exception_ptr) {
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
            const response reply = co_await answer(scores_, asked);
            co_await http::async_write(stream, reply, asio::use_awaitable);
            if (!reply.keep_alive())
                break;
        }
    }
    //]

    serve::dynamic_batcher scores_;
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
    const response ones = co_await ask(stream, "/score", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
    const response one = co_await ask(stream, "/score", "6 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    const response nothing = co_await ask(stream, "/score", "");
    const response unknown = co_await ask(stream, "/else", "1");
    co_return ones.result() == http::status::ok&& ones.body() == "8.000000" && one.body() == "3.000000" &&
        nothing.result() == http::status::bad_request&& unknown.result() == http::status::not_found;
}

asio::awaitable<void> run(bool& right)
{
    const auto executor = co_await asio::this_coro::executor;
    const ca::device_options options{};
    ca::device gpu = co_await ca::device::async_create(executor, options, asio::use_awaitable);
    //[http_batched
    const std::vector devices{gpu};
    const std::vector models{make_model().value()};
    serve::batcher_options batching;
    batching.name = "score";
    const auto scores =
        co_await serve::dynamic_batcher::async_create(executor, devices, models, batching, asio::use_awaitable);
    const telemetry::registry metrics(executor);
    const auto of_gpu = metrics.add(gpu, "gpu0").value();
    const auto of_scores = scores.report_to(metrics);
    const auto page = telemetry::http_endpoint::start(executor, metrics, {}).value();
    std::cout << "metrics at http://127.0.0.1:" << page.port() << "/\n";
    //]
    asio::signal_set signals(executor, SIGINT, SIGTERM);
    const tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0); // the system chooses a free port
    server http_server(scores, any_port);

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
    co_await page.async_stop(asio::use_awaitable);
    co_await scores.async_shutdown(ca::shutdown::drain, asio::use_awaitable);
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
