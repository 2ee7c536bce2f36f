#include "unit/server/poisonable_models.hpp"

using namespace coaccel;
using test::contains;
using test::tcp;

namespace {

/// The value of a metric without labels, or with the given ones.
double metric(test::server_fixture& f, const std::string& name)
{
    const auto text = f.ask(test::get("/metrics")).body;
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
}

void wait_for_metric(test::server_fixture& f, const std::string& name, double value)
{
    const auto end = std::chrono::steady_clock::now() + test::patience;
    while (metric(f, name) < value && std::chrono::steady_clock::now() < end) {
    }
    CHECK_MESSAGE(metric(f, name) >= value, name);
}

void write_all(tcp::socket& s, const std::string& text)
{
    asio::write(s, asio::buffer(text));
}

test::http_answer answer_of(test::server_fixture& f, tcp::socket& s, std::string& rest)
{
    return test::co_run(f.io, test::read_answer(s, rest));
}

bool ends(test::server_fixture& f, tcp::socket& s)
{
    return test::co_run(f.io, test::read_all(s)).empty();
}

} // namespace

TEST_SUITE_BEGIN("server.connections");

TEST_CASE_FIXTURE(test::server_fixture, "a connection is kept, and requests may be sent before the replies")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    auto socket = test::connected(io, serving->port());
    std::string all;
    for (int i = 0; i < 20; ++i) {
        all += test::post("/v2/models/scale/infer", test::json_request(std::to_string(i) + ",0,0,0"));
        all += test::get("/v2/health/live");
    }
    write_all(socket, all);
    std::string rest;
    for (int i = 0; i < 20; ++i) {
        CHECK(contains(answer_of(*this, socket, rest).body, "\"data\":[" + std::to_string(2 * i) + ",0,0,0]"));
        CHECK(contains(answer_of(*this, socket, rest).body, "live"));
    }
    write_all(socket, test::get("/v2", "Connection: close\r\n"));
    const auto last = answer_of(*this, socket, rest);
    CHECK_MESSAGE(contains(last.head, "Connection: close"), last.status, last.head, rest);
    CHECK(ends(*this, socket));
}

TEST_CASE_FIXTURE(test::server_fixture, "a request may come byte by byte, and in chunks")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    auto socket = test::connected(io, serving->port());
    for (const char c : test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"))) {
        write_all(socket, std::string(1, c));
        io.restart();
        io.poll();
    }
    std::string rest;
    CHECK(answer_of(*this, socket, rest).status == 200);
    const auto body = test::json_request("1,2,3,4");
    std::string chunked = "POST /v2/models/scale/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char c : body)
        chunked += std::string("1\r\n") + c + "\r\n";
    write_all(socket, chunked + "0\r\n\r\n");
    CHECK(contains(answer_of(*this, socket, rest).body, "[2,4,6,8]"));
    write_all(socket, "POST /v2/models/scale/infer HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n");
    while (!contains(rest, "100 Continue")) {
        char piece[100];
        const auto n = test::co_run(io, [](tcp::socket& s, char* to) -> asio::awaitable<std::size_t> {
            const auto got = co_await s.async_read_some(asio::buffer(to, 100), asio::use_awaitable);
            co_return got;
        }(socket, piece));
        rest.append(piece, n);
    }
    rest.clear();
    write_all(socket, body);
    CHECK(answer_of(*this, socket, rest).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "requests beyond the limits are refused, and the connection is closed")
{
    options.limits.max_body_bytes = 2000;
    options.limits.max_header_bytes = 1000;
    start();
    const auto large =
        test::co_run(io, test::exchange(serving->port(), test::post("/v2/models/m/infer", std::string(2001, 'x'))));
    CHECK(test::status_of(large) == 413);
    CHECK(contains(large, "the body is longer than 2000 bytes"));
    const auto endless = test::co_run(
        io, test::exchange(serving->port(),
                           "POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFF\r\n" +
                               std::string(5000, 'x')));
    CHECK(test::status_of(endless) == 413);
    const auto long_header =
        test::co_run(io, test::exchange(serving->port(), test::get("/v2", "X: " + std::string(2000, 'y') + "\r\n")));
    CHECK(test::status_of(long_header) == 431);
    const auto garbage = test::co_run(io, test::exchange(serving->port(), "\x16\x03\x01garbage\r\n\r\n"));
    CHECK(test::status_of(garbage) == 400);
    const auto two_lengths =
        test::co_run(io, test::exchange(serving->port(),
                                        "POST /v2 HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n12345"));
    CHECK(test::status_of(two_lengths) == 400);
}

TEST_CASE_FIXTURE(test::server_fixture, "idle, slow and silent connections are closed after their time")
{
    using namespace std::chrono_literals;
    options.limits.idle_timeout = 50ms;
    options.limits.header_timeout = 50ms;
    options.limits.transfer_timeout = 50ms;
    start();
    auto idle = test::connected(io, serving->port());
    CHECK(ends(*this, idle));
    auto slow = test::connected(io, serving->port());
    write_all(slow, "GET /v2 HTTP/1.1\r\nHost:");
    CHECK(ends(*this, slow));
    auto half = test::connected(io, serving->port());
    write_all(half, "POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc");
    CHECK(ends(*this, half));
}

TEST_CASE_FIXTURE(test::server_fixture, "with all connections in use, a further one replaces the one idle for longest")
{
    options.limits.max_connections = 2;
    start();
    auto first = test::connected(io, serving->port());
    std::string rest;
    write_all(first, test::get("/v2"));
    CHECK(answer_of(*this, first, rest).status == 200);
    auto second = test::connected(io, serving->port());
    write_all(second, test::get("/v2"));
    CHECK(answer_of(*this, second, rest).status == 200);
    CHECK(ask(test::get("/v2")).status == 200);
    CHECK(ends(*this, first));
}

TEST_CASE_FIXTURE(test::server_fixture, "a client that closes only its half gets its reply")
{
    test::add_poisonable(*this);
    start();
    auto socket = test::connected(io, serving->port());
    write_all(socket, test::post("/v2/models/slow/infer", test::slow_request(200)));
    socket.shutdown(tcp::socket::shutdown_send);
    std::string rest;
    const auto a = answer_of(*this, socket, rest);
    CHECK(a.status == 200);
    CHECK(ends(*this, socket));
}

TEST_CASE_FIXTURE(test::server_fixture, "a request whose client has gone leaves its batch")
{
    test::add_poisonable(*this, {1});
    options.model_defaults.instances = 1;
    start();
    auto busy = test::connected(io, serving->port());
    write_all(busy, test::post("/v2/models/slow/infer", test::slow_request(1000)));
    {
        auto gone = test::connected(io, serving->port());
        write_all(gone, test::post("/v2/models/slow/infer", test::slow_request(60'000)));
        // Otherwise the server would never see the request.
        wait_for_metric(*this, "coaccel_batcher_queue{batcher=\"slow/1\",level=\"normal\"}", 1);
        // A reset. A client that has sent FIN may still wait for its reply.
        gone.set_option(asio::socket_base::linger(true, 0));
        gone.close();
    }
    wait_for_metric(*this, "coaccel_server_clients_gone_total", 1);
    wait_for_metric(*this, "coaccel_batcher_requests_total{batcher=\"slow/1\",outcome=\"cancelled\"}", 1);
    std::string rest;
    CHECK(answer_of(*this, busy, rest).status == 200);
    CHECK(ask(test::post("/v2/models/slow/infer", test::slow_request(0))).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "a drain answers what has arrived, and closes what is idle")
{
    test::add_poisonable(*this);
    start();
    auto idle = test::connected(io, serving->port());
    auto busy = test::connected(io, serving->port());
    const auto request = test::post("/v2/models/slow/infer", test::slow_request(200));
    write_all(busy, request + test::get("/v2/health/live"));
    wait_for_metric(*this, "coaccel_batcher_batches_in_flight{batcher=\"slow/1\"}", 1);
    bool stopped = false;
    serving->async_shutdown(shutdown::drain, [&](error_code ec) { stopped = !ec; });
    std::string rest;
    CHECK(answer_of(*this, busy, rest).status == 200);
    const auto last = answer_of(*this, busy, rest);
    CHECK(last.status == 200);
    CHECK(contains(last.head, "Connection: close"));
    CHECK(ends(*this, idle));
    test::run_until(io, [&] { return stopped; });
    error_code refused;
    tcp::socket late(io);
    late.connect({asio::ip::address_v4::loopback(), serving->port()}, refused);
    CHECK(refused);
    serving.reset();
}

TEST_CASE_FIXTURE(test::server_fixture, "a drain ends after its time limit")
{
    options.drain_timeout = std::chrono::milliseconds(20);
    test::add_poisonable(*this);
    start();
    auto busy = test::connected(io, serving->port());
    write_all(busy, test::post("/v2/models/slow/infer", test::slow_request(2000)));
    wait_for_metric(*this, "coaccel_batcher_batches_in_flight{batcher=\"slow/1\"}", 1);
    stop();
    CHECK(ends(*this, busy));
}

TEST_CASE_FIXTURE(test::server_fixture, "a server that is destroyed closes its connections")
{
    start();
    auto idle = test::connected(io, serving->port());
    std::string rest;
    write_all(idle, test::get("/v2"));
    CHECK(answer_of(*this, idle, rest).status == 200);
    serving.reset();
    CHECK(ends(*this, idle));
    test::run_out(io);
}

TEST_CASE_FIXTURE(test::server_fixture, "a server that cannot start says why")
{
    start();
    test::server_fixture other;
    other.options.port = serving->port();
    const auto taken = other.try_start();
    CHECK(taken == errc::start_failed);
    CHECK(contains(taken.message(), "port " + std::to_string(serving->port())));
    other.options.port = 0;
    other.options.address = "nowhere";
    CHECK(other.try_start() == errc::invalid_option);
    other.options.address = "127.0.0.1";
    other.options.access_log = "/nonexistent/folder/log";
    CHECK(other.try_start() == errc::file_failed);
}

TEST_CASE("threads share connections")
{
    test::server_fixture f;
    f.options.io_threads = 4;
    test::save_model(f.folder.path(), "scale", 1, test::scale_set(2));
    f.start();
    const auto port = f.serving->port();
    std::atomic<int> right = 0;
    {
        auto work = asio::make_work_guard(f.io);
        f.io.restart();
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] { f.io.run(); });
        {
            std::vector<std::jthread> clients;
            for (int c = 0; c < 8; ++c)
                clients.emplace_back([&, c] {
                    asio::io_context own;
                    auto socket = test::connected(own, port);
                    std::string rest;
                    for (int i = 0; i < 50; ++i) {
                        write_all(socket, test::post("/v2/models/scale/infer",
                                                     test::json_request(std::to_string(c * 100 + i) + ",0,0,0")));
                        const auto a = test::co_run(own, test::read_answer(socket, rest));
                        right += contains(a.body, "\"data\":[" + std::to_string(2 * (c * 100 + i)) + ",0,0,0]");
                    }
                });
        }
        work.reset();
        f.io.stop();
    }
    CHECK(right == 400);
    f.io.restart();
}

TEST_SUITE_END();
