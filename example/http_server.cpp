// A Beast HTTP server whose requests share batches: POST /score with 16 numbers returns their score. A second port has
// the metrics, the traces and the live page. SIGINT or SIGTERM ends it after the requests that have arrived.
#include "http_server_client.hpp"

#include <coaccel/coaccel.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>
#include <coaccel/telemetry/http_endpoint.hpp>
#include <coaccel/telemetry/registry.hpp>
#include <coaccel/telemetry/trace_json.hpp>

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
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
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

//[http_metrics
// Metrics of the server itself, beside those of its device and its batcher.
struct server_metrics {
    telemetry::counter answered;
    telemetry::counter failed;
    telemetry::histogram seconds;
};

ca::result<server_metrics> make_metrics(const telemetry::registry& r)
{
    const char* const help = "Requests for scores.";
    BOOST_OUTCOME_TRY(auto answered, r.add_counter("http_scores_total", help, {{"outcome", "answered"}}));
    BOOST_OUTCOME_TRY(auto failed, r.add_counter("http_scores_total", help, {{"outcome", "failed"}}));
    BOOST_OUTCOME_TRY(auto seconds, r.add_histogram("http_score_seconds", "From a request to its reply."));
    return server_metrics{answered, failed, seconds};
}
//]

// Shared by the sessions.
struct service {
    service(serve::dynamic_batcher batcher, server_metrics m, std::shared_ptr<ca::trace_buffer> t)
        : scores(std::move(batcher)), metrics(std::move(m)), trace(std::move(t)), track(trace->add_track("http")),
          name(trace->intern("POST /score"))
    {}

    serve::dynamic_batcher scores;
    server_metrics metrics;
    std::shared_ptr<ca::trace_buffer> trace;
    ca::trace_track track;
    ca::trace_name name;
};

//[http_event
// The event of a request in the trace. If the request has the header field traceparent, it belongs to that trace.
class request_event {
public:
    request_event(const service& s, std::string_view header) : service_(s)
    {
        event_.kind = ca::trace_kind::request;
        event_.track = s.track;
        event_.name = s.name;
        event_.id = s.trace->new_id();
        event_.begin = ca::trace_event::clock::now();
        if (const auto caller = ca::parse_traceparent(header))
            caller_ = caller.value();
    }

    std::uint64_t id() const { return event_.id; }

    // The field for the reply, and for requests to other servers that this request causes: the same trace, with this
    // event as the parent. Empty if the request has none.
    std::string traceparent() const
    {
        if (!caller_)
            return {};
        ca::traceparent here = *caller_;
        here.parent_id = event_.id;
        return to_string(here);
    }

    void end(bool succeeded)
    {
        event_.duration = ca::trace_event::clock::now() - event_.begin;
        event_.outcome = succeeded ? ca::trace_outcome::succeeded : ca::trace_outcome::failed;
        if (caller_)
            service_.trace->add_traceparent(event_.id, *caller_);
        service_.trace->add(event_);
        (succeeded ? service_.metrics.answered : service_.metrics.failed).add();
        service_.metrics.seconds.observe(event_.duration);
    }

private:
    const service& service_;
    ca::trace_event event_;
    std::optional<ca::traceparent> caller_;
};
//]

//[http_score
// Requests that arrive while a batch runs share the next one. Arrows lead from the event of the request to its batch,
// and from there to the run on the device.
asio::awaitable<ca::result<float>> score(serve::dynamic_batcher scores, const std::vector<float>& item,
                                         std::uint64_t event)
{
    std::array<float, 1> y{};
    ca::exec_options options = ca::within(1s);
    options.trace = event;
    const auto limited = scores.with(options);
    BOOST_OUTCOME_CO_TRYV(co_await limited.async_run(ca::from(item), ca::to(y)));
    co_return y[0];
}
//]

// The class of the fault separates mistakes of the client from those of the server.
http::status status_of(const ca::error_code& ec)
{
    return ec == ca::fault::caller ? http::status::bad_request : http::status::service_unavailable;
}

asio::awaitable<response> answer(const service& s, const request& asked)
{
    response r(http::status::ok, asked.version());
    r.keep_alive(asked.keep_alive());
    if (asked.method() != http::verb::post || asked.target() != "/score") {
        r.result(http::status::not_found);
    } else {
        const beast::string_view header = asked["traceparent"];
        request_event event(s, std::string_view(header.data(), header.size()));
        std::istringstream text(asked.body());
        std::vector<float> item;
        for (float x; text >> x;)
            item.push_back(x);
        const auto done = co_await score(s.scores, item, event.id());
        if (!done)
            r.result(status_of(done.error()));
        r.body() = done ? std::to_string(done.value()) : done.error().message();
        if (const std::string passed_on = event.traceparent(); !passed_on.empty())
            r.set("traceparent", passed_on);
        event.end(done.has_value());
    }
    r.prepare_payload();
    co_return r;
}

// One thread runs the io_context of the server and the device, so there are no locks.
class server {
public:
    server(asio::any_io_executor executor, const service& s, const tcp::endpoint& where)
        : service_(s), acceptor_(executor, where), ended_(executor, asio::steady_timer::time_point::max())
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
        asio::co_spawn(acceptor_.get_executor(), std::move(task), [this](std::exception_ptr) {
            if (--running_ == 0)
                ended_.cancel();
        });
    }

    asio::awaitable<void> accept()
    {
        asio::steady_timer pause(acceptor_.get_executor());
        while (!ending_) {
            auto [ec, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
            if (!ec) {
                start(session(std::move(socket)));
            } else if (!ending_) { // such as EMFILE: no descriptor is free
                pause.expires_after(50ms);
                co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
            }
        }
    }

    asio::awaitable<void> session(tcp::socket socket)
    {
        beast::tcp_stream stream(std::move(socket));
        beast::flat_buffer buffer;
        while (!ending_) {
            request asked;
            stream.expires_after(30s); // for the request
            reading_.insert(&stream);
            const auto [ec, size] =
                co_await http::async_read(stream, buffer, asked, asio::as_tuple(asio::use_awaitable));
            reading_.erase(&stream);
            if (ec)
                break;
            const response reply = co_await answer(service_, asked);
            stream.expires_after(30s); // for the reply
            const auto [failed, sent] = co_await http::async_write(stream, reply, asio::as_tuple(asio::use_awaitable));
            if (failed || !reply.keep_alive())
                break;
        }
    }
    //]

    const service service_;
    tcp::acceptor acceptor_;
    asio::steady_timer ended_; // cancelled by the last coroutine
    std::set<beast::tcp_stream*> reading_;
    int running_ = 0;
    bool ending_ = false;
};

asio::awaitable<void> run(bool& right)
{
    const auto executor = co_await asio::this_coro::executor;
    //[http_observed
    const auto trace = ca::trace_buffer::create(); // the latest events of the server, its batcher and its device
    ca::device_options options{};
    options.trace = trace.get();
    ca::device gpu = co_await ca::device::async_create(executor, options, asio::use_awaitable);
    //]
    //[http_batched
    const std::vector devices{gpu};
    const std::vector models{make_model().value()};
    serve::batcher_options batching;
    batching.name = "score";
    batching.trace = trace.get();
    const auto scores =
        co_await serve::dynamic_batcher::async_create(executor, devices, models, batching, asio::use_awaitable);
    const telemetry::registry metrics(executor);
    const auto of_gpu = metrics.add(gpu, "gpu0").value();
    const auto of_scores = scores.report_to(metrics);
    telemetry::http_endpoint_options observing;
    observing.trace = [trace] { return telemetry::trace_json(*trace); }; // what /trace returns
    const auto page = telemetry::http_endpoint::start(executor, metrics, observing).value();
    std::cout << "metrics at http://127.0.0.1:" << page.port() << "/\n";
    //]
    asio::signal_set signals(executor, SIGINT, SIGTERM);
    const service shared(scores, make_metrics(metrics).value(), trace);
    const tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0); // the system chooses a free port
    server http_server(executor, shared, any_port);

    tcp::socket idle(executor); // sends nothing; the server closes the connection when it ends
    const auto [refused] = co_await idle.async_connect(http_server.address(), asio::as_tuple(asio::use_awaitable));
    const tcp::endpoint page_address(asio::ip::address_v4::loopback(), page.port());
    asio::co_spawn(executor, try_it(http_server.address(), page_address),
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
