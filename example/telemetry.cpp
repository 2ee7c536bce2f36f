// A device under load with an HTTP endpoint for its metrics. Without an argument it reads its own metrics and ends;
// with a port, as in `telemetry 9464`, it stays until SIGINT or SIGTERM, and http://127.0.0.1:9464/ shows it live.
#include <coaccel/coaccel.hpp>
#include <coaccel/telemetry/http_endpoint.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace telemetry = coaccel::telemetry;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

//[telemetry_own
// A metric of the program itself, next to those of the device.
struct request_metrics {
    telemetry::counter served;
    telemetry::histogram sizes;
};

ca::result<request_metrics> make_metrics(const telemetry::registry& metrics)
{
    BOOST_OUTCOME_TRY(auto served,
                      metrics.add_counter("example_requests_total", "Requests served.", {{"kind", "norm"}}));
    BOOST_OUTCOME_TRY(auto sizes, metrics.add_histogram("example_request_elements", "Numbers in a request.", {},
                                                        telemetry::histogram_options::sizes()));
    return request_metrics{served, sizes};
}
//]

constexpr std::uint64_t row_size = 1024;

ca::result<ca::plan_description> scale_plan()
{
    ca::plan_builder b("scale");
    const auto x = b.input<float>(row_size);
    const auto y = b.output<float>(row_size);
    b.add(ca::memory::copy<float>{.src = x, .dst = y});
    b.add(ca::blas::scal<float>{.x = y, .n = row_size, .alpha = 0.5f});
    return b.finish();
}

// Requests of random sizes, each followed by a run of a plan, until the device is shut down, or `most` of them.
asio::awaitable<ca::result<void>> load(ca::device gpu, ca::plan scale, request_metrics counts, int most)
{
    std::minstd_rand chance(7);
    asio::steady_timer pause(co_await asio::this_coro::executor);
    const std::vector<float> row(row_size, 1.0f);
    std::vector<float> scaled(row_size);
    for (int i = 0; most == 0 || i < most; ++i) {
        const std::vector<float> numbers(1 + chance() % 4096, 1.0f);
        BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
        BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::blas::scal<float>{.x = x, .n = x.size(), .alpha = 2.0f}));
        BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::blas::nrm2<float>{.x = x, .n = x.size()}));
        BOOST_OUTCOME_CO_TRYV(co_await scale.async_run(ca::from(row), ca::to(scaled)));
        counts.served.add();
        counts.sizes.observe(numbers.size());
        if (most == 0) {
            pause.expires_after(std::chrono::milliseconds(chance() % 4));
            co_await pause.async_wait(asio::use_awaitable);
        }
    }
    co_return ca::success();
}

// The reply of the endpoint to one request.
asio::awaitable<std::string> get(std::uint16_t port, std::string path)
{
    tcp::socket socket(co_await asio::this_coro::executor);
    const tcp::endpoint where(asio::ip::address_v4::loopback(), port);
    co_await socket.async_connect(where, asio::use_awaitable);
    const std::string asked = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    co_await asio::async_write(socket, asio::buffer(asked), asio::use_awaitable);
    std::string reply;
    char part[4096];
    for (boost::system::error_code ec; !ec;) {
        const std::size_t n =
            co_await socket.async_read_some(asio::buffer(part), asio::redirect_error(asio::use_awaitable, ec));
        reply.append(part, n);
    }
    co_return reply;
}

asio::awaitable<ca::result<bool>> run(std::optional<int> port)
{
    const auto executor = co_await asio::this_coro::executor;
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));

    //[telemetry_endpoint
    const telemetry::registry metrics(executor);
    BOOST_OUTCOME_CO_TRY(const auto kept, metrics.add(gpu, "gpu0")); // until `kept` is destroyed
    telemetry::http_endpoint_options where;
    where.port = static_cast<std::uint16_t>(port.value_or(0)); // 0: the system chooses one
    if (const char* const token = std::getenv("TELEMETRY_TOKEN"))
        where.token = token; // needed if others can reach the address
    BOOST_OUTCOME_CO_TRY(const auto endpoint, telemetry::http_endpoint::start(executor, metrics, where));
    std::cout << "http://127.0.0.1:" << endpoint.port() << "/\n" << std::flush;
    //]

    BOOST_OUTCOME_CO_TRY(const auto counts, make_metrics(metrics));
    BOOST_OUTCOME_CO_TRY(const auto description, scale_plan());
    BOOST_OUTCOME_CO_TRY(const auto scale, co_await gpu.async_load(description));
    bool right = true;
    if (!port) {
        BOOST_OUTCOME_CO_TRYV(co_await load(gpu, scale, counts, 20));
        const std::string text = co_await get(endpoint.port(), "/metrics");
        const std::string ready = co_await get(endpoint.port(), "/readyz");
        std::cout << text.substr(text.find("\r\n\r\n") + 4);
        right = text.find("\nexample_requests_total{kind=\"norm\"} 20\n") != std::string::npos &&
                text.find("coaccel_device_calls_total{device=\"gpu0\",outcome=\"completed\"} ") != std::string::npos &&
                ready.starts_with("HTTP/1.1 200");
    } else {
        asio::co_spawn(executor, load(gpu, scale, counts, 0), asio::detached);
        asio::signal_set signals(executor, SIGINT, SIGTERM);
        co_await signals.async_wait(asio::use_awaitable);
    }

    //[telemetry_stop
    BOOST_OUTCOME_CO_TRYV(co_await endpoint.async_stop()); // requests in progress get their replies
    //]
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_shutdown());
    co_return right;
}

} // namespace

int main(int argc, char** argv)
{
    bool right = false;
    asio::io_context io;
    const auto port = argc > 1 ? std::optional(std::atoi(argv[1])) : std::nullopt;
    asio::co_spawn(io, run(port), [&](std::exception_ptr e, ca::result<bool> r) {
        right = !e && r && r.value();
        if (!e && !r)
            std::cerr << r.error().message() << '\n';
    });
    io.run();
    return right ? 0 : 1;
}
