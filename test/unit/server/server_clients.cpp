#include "unit/server/poisonable_models.hpp"

#include <fstream>

using namespace coaccel;
using test::contains;
using test::tcp;

namespace {

constexpr std::size_t large_page = 15 << 20;

/// A connection whose replies are larger than the buffers of the system, so that the server waits for its reader.
tcp::socket slow_reader(test::server_fixture& f)
{
    tcp::socket socket(f.io);
    socket.open(tcp::v4());
    socket.connect({asio::ip::address_v4::loopback(), f.serving->port()});
    return socket;
}

/// Sends a request, and waits until a part of the reply is there.
void begin_reply(test::server_fixture& f, tcp::socket& socket, const std::string& request)
{
    bool sent = false;
    asio::async_write(socket, asio::buffer(request), [&](error_code ec, std::size_t) { sent = !ec; });
    test::run_until(f.io, [&] { return sent && socket.available() > 0; });
}

void add_large_page(test::server_fixture& f, const test::temporary_folder& pages)
{
    std::ofstream(pages / "large.txt") << std::string(large_page, 'x');
    f.options.page_folder = pages.path();
    f.options.drain_timeout = std::chrono::minutes(30);
}

int status_with(test::server_fixture& f, const std::string& request)
{
    return test::status_of(test::co_run(f.io, test::exchange(f.serving->port(), request)));
}

} // namespace

TEST_SUITE_BEGIN("server.clients");

TEST_CASE_FIXTURE(test::server_fixture, "extensions of chunks and trailers have the limit of headers")
{
    options.limits.max_header_bytes = 1000;
    start();
    const std::string head = "POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    CHECK(status_with(*this, head + "1;" + std::string(100'000, 'a')) == 431);
    CHECK(status_with(*this, head + "0\r\nX: " + std::string(100'000, 'a')) == 431);
    CHECK(status_with(*this, head + "1\r\na\r\n0\r\nX: " + std::string(100'000, 'a')) == 431);
}

TEST_CASE_FIXTURE(test::server_fixture, "connections that come together take the places of different ones")
{
    options.limits.max_connections = 2;
    start();
    auto first = test::connected(io, serving->port());
    auto second = test::connected(io, serving->port());
    std::string rest;
    for (auto* s : {&first, &second}) {
        asio::write(*s, asio::buffer(test::get("/v2")));
        CHECK(test::co_run(io, test::read_answer(*s, rest)).status == 200);
    }
    // Nothing runs between these: the server accepts both in one turn.
    auto third = test::connected(io, serving->port());
    auto fourth = test::connected(io, serving->port());
    CHECK(test::co_run(io, test::read_all(first)).empty());
    CHECK(test::co_run(io, test::read_all(second)).empty());
    for (auto* s : {&third, &fourth}) {
        asio::write(*s, asio::buffer(test::get("/v2")));
        CHECK(test::co_run(io, test::read_answer(*s, rest)).status == 200);
    }
}

TEST_CASE_FIXTURE(test::server_fixture, "a request that comes together with a further connection is answered")
{
    options.limits.max_connections = 1;
    start();
    auto first = test::connected(io, serving->port());
    std::string rest;
    asio::write(first, asio::buffer(test::get("/v2")));
    CHECK(test::co_run(io, test::read_answer(first, rest)).status == 200);
    auto second = test::connected(io, serving->port());
    asio::write(first, asio::buffer(test::get("/v2")));
    asio::write(second, asio::buffer(test::get("/v2")));
    CHECK(test::co_run(io, test::read_answer(first, rest)).status == 200);
    CHECK(test::co_run(io, test::read_answer(second, rest)).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "on a loopback address, requests to other hosts need a key")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.tenants["a"].api_key = "k";
    options.telemetry_token = "secret";
    start();
    const auto infer = [](const std::string& fields) {
        const auto body = test::json_request("1,2,3,4");
        return "POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
               fields + "\r\n" + body;
    };
    const auto refused = ask(infer("Host: rebound.example:80\r\n"));
    CHECK(refused.status == 421);
    CHECK_MESSAGE(contains(refused.body, "rebound.example:80"), refused.body);
    CHECK(ask(infer("Host: localhost:80\r\n")).status == 200);
    CHECK(ask(infer("Host: 127.0.0.1\r\n")).status == 200);
    CHECK(ask(infer("Host: rebound.example\r\nX-API-Key: k\r\n")).status == 200);
    const std::string unload = "POST /v2/repository/models/scale/unload HTTP/1.1\r\nHost: rebound.example\r\n";
    CHECK(ask(unload + "Content-Length: 0\r\n\r\n").status == 421);
    CHECK(ask("GET /page/ HTTP/1.1\r\nHost: rebound.example\r\n\r\n").status == 421);
    CHECK(ask("GET /v2/health/ready HTTP/1.1\r\nHost: rebound.example\r\n\r\n").status == 200);
    CHECK(ask(unload + "Content-Length: 0\r\nAuthorization: Bearer secret\r\n\r\n").status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "with tenants, the token of the server controls models")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.anonymous = false;
    options.tenants["a"].api_key = "k";
    options.telemetry_token = "secret";
    start();
    const std::string token = "Authorization: Bearer secret\r\n";
    CHECK(ask(test::post("/v2/repository/index", "", token)).status == 200);
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "", token)).status == 200);
    CHECK(ask(test::post("/v2/repository/models/scale/load", "", token)).status == 200);
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "", "Authorization: Bearer k\r\n")).status == 401);
    CHECK(ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"), token)).status == 401);
}

TEST_CASE_FIXTURE(test::server_fixture, "the rate of a tenant counts before its request is parsed")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.anonymous_limits.rate = 1;
    options.anonymous_limits.burst = 1;
    options.tenants["a"].api_key = "k";
    start();
    const auto first = ask(test::post("/v2/models/scale/infer", "not JSON"));
    CHECK(first.status == 400);
    // Until a second has passed, the next ones are refused without a look at their bodies.
    int refused = 0;
    for (int i = 0; i < 1000 && refused == 0; ++i)
        refused += ask(test::post("/v2/models/scale/infer", "not JSON")).status == 429;
    CHECK(refused == 1);
}

TEST_CASE_FIXTURE(test::server_fixture, "a drain does not wait for further requests after a reply")
{
    const test::temporary_folder pages;
    add_large_page(*this, pages);
    options.limits.idle_timeout = std::chrono::minutes(30);
    start();
    auto socket = slow_reader(*this);
    begin_reply(*this, socket, test::get("/page/large.txt"));
    bool stopped = false;
    serving->async_shutdown(shutdown::drain, [&](error_code ec) { stopped = !ec; });
    const auto all = test::co_run(io, test::read_all(socket));
    CHECK(test::body_of(all).size() == large_page);
    test::run_until(io, [&] { return stopped; });
    serving.reset();
}

TEST_CASE_FIXTURE(test::server_fixture, "a second shutdown ends the drain of the first one")
{
    const test::temporary_folder pages;
    add_large_page(*this, pages);
    start();
    auto socket = slow_reader(*this);
    begin_reply(*this, socket, test::get("/page/large.txt"));
    int stopped = 0;
    serving->async_shutdown(shutdown::drain, [&](error_code ec) { stopped += !ec; });
    serving->async_shutdown(shutdown::drain, [&](error_code ec) { stopped += !ec; });
    for (int i = 0; i < 20; ++i)
        io.poll();
    CHECK(stopped == 0);
    serving->async_shutdown(shutdown::abandon, [&](error_code ec) { stopped += !ec; });
    test::run_until(io, [&] { return stopped == 3; });
    serving->async_shutdown(shutdown::drain, [&](error_code ec) { stopped += !ec; });
    test::run_until(io, [&] { return stopped == 4; });
    serving.reset();
    test::run_out(io);
}

TEST_CASE_FIXTURE(test::server_fixture, "a client that takes its reply slowly does not keep the model")
{
    constexpr std::uint32_t rows = 1 << 20;
    test::save_model(folder.path(), "scale", 1, test::scale_set(2, {1, rows}));
    options.model_defaults.instances = 1;
    start();
    auto socket = slow_reader(*this);
    begin_reply(*this, socket,
                test::post("/v2/models/scale/infer", std::string(std::size_t(rows) * 4 * sizeof(float), '\0'),
                           "Inference-Header-Content-Length: 0\r\n"));
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "")).status == 200);
    std::string rest;
    const auto a = test::co_run(io, test::read_answer(socket, rest));
    CHECK(a.status == 200);
    CHECK(a.body.size() > std::size_t(rows) * 4 * sizeof(float));
}

TEST_CASE_FIXTURE(test::server_fixture, "a request whose client has gone is in the log")
{
    const test::temporary_folder pages, logs;
    add_large_page(*this, pages);
    options.access_log = logs / "access.log";
    start();
    {
        auto socket = slow_reader(*this);
        begin_reply(*this, socket, test::get("/page/large.txt"));
    }
    const auto end = std::chrono::steady_clock::now() + test::patience;
    const auto counted = [&] {
        return contains(ask(test::get("/metrics")).body, "coaccel_server_requests_total{status=\"499\"} 1");
    };
    while (!counted() && std::chrono::steady_clock::now() < end) {
    }
    CHECK(counted());
    stop();
    std::ifstream log(logs / "access.log");
    const std::string lines((std::istreambuf_iterator<char>(log)), {});
    CHECK_MESSAGE(contains(lines, "\"GET /page/large.txt\" 499 "), lines);
}

TEST_CASE_FIXTURE(test::server_fixture, "only the devices of the server make it ready")
{
    device_options cpu;
    cpu.kind = device_kind::host;
    auto other = await(device::async_create(io.get_executor(), cpu)).value();
    const auto shown = metrics.add(other, "other").value();
    start();
    CHECK(await(other.async_shutdown(shutdown::abandon)));
    CHECK(ask(test::get("/readyz")).status == 200);
    CHECK(ask(test::get("/v2/health/ready")).status == 200);
    CHECK(serving->ready());
}

TEST_CASE_FIXTURE(test::server_fixture, "the creation of a server can be cancelled")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    asio::cancellation_signal cancel;
    std::optional<error_code> ended;
    coaccel::server::server::async_create(
        io.get_executor(), options, metrics,
        asio::bind_cancellation_slot(cancel.slot(), [&](error_code ec, coaccel::server::server made) {
            ended = ec;
            CHECK_FALSE(made);
        }));
    cancel.emit(asio::cancellation_type::terminal);
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK(*ended == asio::error::operation_aborted);
    test::run_out(io);
    start();
    CHECK(ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"))).status == 200);
}

TEST_SUITE_END();
