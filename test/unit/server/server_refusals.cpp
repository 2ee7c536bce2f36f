#include "unit/server/server_fixture.hpp"

#include <coaccel/core/log.hpp>

#include <csignal>
#include <fstream>
#include <sys/resource.h>

// What the header of a request is enough to refuse, and what all connections together may use.
namespace test_server_refusals {
namespace {

using namespace coaccel;
using test::contains;
using test::tcp;

std::string head_of(const std::string& first_line, const std::string& fields)
{
    return first_line + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

/// Everything that the server sends until it closes the connection.
std::string reply_to(test::server_fixture& f, const std::string& text)
{
    return test::co_run(f.io, test::exchange(f.serving->port(), text));
}

/// Lowers the limit of descriptors, and raises it again.
class fewer_descriptors {
public:
    explicit fewer_descriptors(rlim_t count)
    {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        rlimit now = before_;
        now.rlim_cur = count;
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
    }
    ~fewer_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

} // namespace

TEST_SUITE_BEGIN("server.refusals");

TEST_CASE_FIXTURE(test::server_fixture, "a request that its header refuses is refused before its body comes")
{
    options.tenants["a"].api_key = "secret";
    options.anonymous = false;
    start();
    const std::string body_to_come = "Expect: 100-continue\r\nContent-Length: 1000000\r\n";
    const auto status = [&](const std::string& first_line, const std::string& fields) {
        const auto all = reply_to(*this, head_of(first_line, fields + body_to_come));
        CHECK_MESSAGE(!contains(all, "100 Continue"), all);
        return test::status_of(all);
    };
    CHECK(status("POST /v2/models/m/infer", "") == 401);
    CHECK(status("POST /v2/models/m/infer", "X-API-Key: wrong\r\n") == 401);
    CHECK(status("POST /v2/repository/models/m/load", "") == 401);
    CHECK(status("POST /v2/repository/models/m/load", "X-API-Key: secret\r\n") == 403);
    CHECK(status("POST /v2/models/%zz/infer", "") == 400);
    CHECK(status("PUT /v2/models/m/infer", "") == 405);
    CHECK(status("POST /v2/models/m/infer", "Content-Encoding: gzip\r\n") == 415);
    CHECK(status("POST /v2/models/m/infer", "Inference-Header-Content-Length: x\r\n") == 400);
    // These need no body.
    CHECK(status("GET /v2", "X-API-Key: secret\r\n") == 413);
    CHECK(status("GET /metrics", "") == 413);
    CHECK(test::status_of(reply_to(*this, head_of("GET /metrics", "Transfer-Encoding: chunked\r\n"))) == 413);
    CHECK(ask(test::get("/v2", "X-API-Key: secret\r\n")).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "a body in another coding than chunks is refused")
{
    start();
    for (const std::string coding : {"gzip", "xchunked", "gzip, chunked", "identity"}) {
        CHECK(test::status_of(reply_to(*this, head_of("POST /v2/models/m/infer",
                                                      "Transfer-Encoding: " + coding + "\r\nContent-Length: 3\r\n") +
                                                  "abc")) == 400);
        CHECK(test::status_of(
                  reply_to(*this, head_of("POST /v2/models/m/infer", "Transfer-Encoding: " + coding + "\r\n"))) == 400);
    }
}

TEST_CASE_FIXTURE(test::server_fixture, "a target may have the address of the server")
{
    start();
    const auto status = [&](const std::string& target, const std::string& host) {
        return ask("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status;
    };
    CHECK(status("http://localhost:8000/v2", "localhost") == 200);
    CHECK(status("HTTP://127.0.0.1/v2/health/live?x=/", "x") == 200);
    CHECK(status("http://localhost", "x") == 200);
    CHECK(status("http://localhost?x", "x") == 200);
    // The address in the target is stronger than Host.
    CHECK(status("http://elsewhere.example/v2", "localhost") == 421);
    CHECK(status("http:/v2", "localhost") == 404);
}

TEST_CASE_FIXTURE(test::server_fixture, "all bodies together have a limit")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.limits.max_body_bytes = 1 << 20;
    options.limits.max_total_body_bytes = 1 << 20;
    start();
    const std::string head = head_of("POST /v2/models/scale/infer", "Content-Length: 1000000\r\n");
    {
        auto first = test::connected(io, serving->port());
        auto second = test::connected(io, serving->port());
        for (auto* socket : {&first, &second})
            asio::write(*socket, asio::buffer(head + std::string(600'000, ' ')));
        // One of them is refused; the other one waits for the rest of its body.
        test::run_until(io, [&] { return first.available() + second.available() > 0; });
        std::string rest;
        const auto a = test::co_run(io, test::read_answer(first.available() > 0 ? first : second, rest));
        CHECK(a.status == 503);
        CHECK_MESSAGE(contains(a.body, "max_total_body_bytes"), a.body);
        CHECK(contains(a.head, "Retry-After: 1"));
        // Small ones are answered.
        CHECK(ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"))).status == 200);
    }
    // The connection has ended, and its memory is free.
    const auto body = test::json_request("1,2,3,4");
    const std::string request = head_of("POST /v2/models/scale/infer", "Content-Length: 1000000\r\n") + body +
                                std::string(1'000'000 - body.size(), ' ');
    int status = 0;
    const auto end = std::chrono::steady_clock::now() + test::patience;
    while (status != 200 && std::chrono::steady_clock::now() < end)
        status = ask(request).status;
    CHECK(status == 200);
    for (int i = 0; i < 3; ++i)
        CHECK(ask(request).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "models are loaded by hand only from this machine or with a token")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.address = "0.0.0.0";
    start();
    const auto unload = test::post("/v2/repository/models/scale/unload", "");
    const auto refused = ask(unload);
    CHECK(refused.status == 403);
    CHECK_MESSAGE(contains(refused.body, "telemetry_token"), refused.body);
    stop();
    options.telemetry_token = "operator";
    start();
    CHECK(ask(unload).status == 401);
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "", "Authorization: Bearer operator\r\n")).status ==
          200);
}

TEST_CASE_FIXTURE(test::server_fixture, "a model without a version to load is an error")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    std::filesystem::create_directories(std::filesystem::path(folder.path()) / "empty" / "1");
    options.models["scale"].versions.how = server::version_policy::rule::listed;
    options.models["scale"].versions.list = {5};
    start();
    const auto loaded = ask(test::post("/v2/repository/models/scale/load", ""));
    CHECK(loaded.status == 404);
    CHECK_MESSAGE(contains(loaded.body, "has no version that its option versions chooses"), loaded.body);
    CHECK(ask(test::post("/v2/repository/models/empty/load", "")).status == 404);
}

TEST_CASE_FIXTURE(test::server_fixture, "the reply for a model that is not loaded says why")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "")).status == 200);
    const auto a = ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4")));
    CHECK(a.status == 404);
    CHECK_MESSAGE(contains(a.body, "unloaded by a client"), a.body);
}

TEST_CASE_FIXTURE(test::server_fixture, "the token of the server is not the key of a tenant")
{
    options.tenants["a"].api_key = "secret";
    options.telemetry_token = "secret";
    const auto ec = try_start();
    CHECK(ec == errc::invalid_option);
    CHECK_MESSAGE(contains(ec.message(), "tenant a: api_key is the same as telemetry_token"), ec.message());
}

TEST_CASE_FIXTURE(test::server_fixture, "after a restart, an older version answers in place of a broken one")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    test::save_model(folder.path(), "scale", 2, test::scale_set(3));
    std::filesystem::create_directories(std::filesystem::path(folder.path()) / "scale" / "3");
    std::ofstream(std::filesystem::path(folder.path()) / "scale" / "3" / "model.plan") << "broken";
    start();
    const auto request = test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"));
    CHECK(contains(ask(request).body, "[3,6,9,12]"));
    CHECK(contains(ask(test::post("/v2/repository/index", "")).body, "UNAVAILABLE"));
    // When it is whole, it takes over.
    test::save_model(folder.path(), "scale", 3, test::scale_set(4));
    CHECK(ask(test::post("/v2/repository/models/scale/load", "")).status == 200);
    CHECK(contains(ask(request).body, "[4,8,12,16]"));
}

TEST_CASE_FIXTURE(test::server_fixture, "a device that has failed is tried again")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.devices[0].isolation = isolation::worker;
    options.devices[0].restart.max_restarts = 0;
    start();
    const auto request = test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"));
    CHECK(ask(request).status == 200);
    const auto all = await(metrics.async_collect());
    REQUIRE(all);
    REQUIRE(all.value().devices.at(0).stats);
    REQUIRE(::kill(all.value().devices[0].stats->hardware.process, SIGKILL) == 0);
    test::run_until(io, [&] { return !serving->ready(); });
    CHECK(ask(request).status == 503);
    test::run_until(io, [&] { return serving->ready(); });
    CHECK(ask(request).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "without tenants, anonymous requests cannot be refused")
{
    options.anonymous = false;
    const auto ec = try_start();
    CHECK(ec == errc::invalid_option);
    CHECK_MESSAGE(contains(ec.message(), "anonymous"), ec.message());
}

TEST_CASE_FIXTURE(test::server_fixture, "a small batch of one model does not limit the others")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2, {1, 64}));
    options.tenants["a"].api_key = "secret";
    options.models["tiny"].max_batch = 1;
    options.model_defaults.max_delay = std::chrono::milliseconds(200);
    start();
    const auto request = test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"), "X-API-Key: secret\r\n");
    std::vector<tcp::socket> clients;
    for (int i = 0; i < 32; ++i) {
        clients.push_back(test::connected(io, serving->port()));
        asio::write(clients.back(), asio::buffer(request));
    }
    for (auto& c : clients) {
        std::string rest;
        CHECK(test::co_run(io, test::read_answer(c, rest)).status == 200);
    }
    // With two requests at a time, there would be at least 16.
    const auto text = ask(test::get("/v2/models/scale/stats", "X-API-Key: secret\r\n")).body;
    const auto at = text.find("\"execution_count\":");
    REQUIRE_MESSAGE(at != text.npos, text);
    CHECK_MESSAGE(std::stoi(text.substr(at + 18)) < 16, text);
}

TEST_CASE_FIXTURE(test::server_fixture, "several calls of async_shutdown wait without work")
{
    auto sockets = std::vector<tcp::socket>();
    start();
    // A connection with a part of a request keeps the drain waiting.
    sockets.push_back(test::connected(io, serving->port()));
    asio::write(sockets[0], asio::buffer(std::string("GET /v2 HTTP/1.1\r\n")));
    CHECK(ask(test::get("/v2")).status == 200);
    int ended = 0;
    for (int i = 0; i < 4; ++i)
        serving->async_shutdown(shutdown::drain, [&](error_code) { ++ended; });
    io.restart();
    const auto handlers = io.run_for(std::chrono::milliseconds(300));
    // Each turn of the old mistake was a handler: there were many thousands.
    CHECK_MESSAGE(handlers < 1000, handlers);
    sockets.clear();
    test::run_until(io, [&] { return ended == 4; });
}

TEST_CASE_FIXTURE(test::server_fixture,
                  "the limit of descriptors limits connections, and the server goes on without any")
{
    start();
    std::vector<std::string> messages;
    stop();
    {
        const fewer_descriptors few(600);
        set_log_sink(log_level::warning, [&](log_level, std::string_view text) { messages.emplace_back(text); });
        start();
        set_log_sink(log_level::warning, {});
        REQUIRE(messages.size() == 1);
        CHECK_MESSAGE(contains(messages[0], "at most 344 connections instead of 16384"), messages[0]);
        stop();
    }
    start();
    auto idle = test::connected(io, serving->port());
    asio::write(idle, asio::buffer(test::get("/v2")));
    std::string rest;
    CHECK(test::co_run(io, test::read_answer(idle, rest)).status == 200);
    // A client that is in the queue of the system while the process has no descriptor left for it.
    auto waiting = test::connected(io, serving->port());
    {
        tcp::socket next(io);
        next.open(tcp::v4());
        const auto lowest = next.native_handle();
        const fewer_descriptors none(static_cast<rlim_t>(lowest) + 1);
        next.connect({asio::ip::address_v4::loopback(), serving->port()});
        asio::write(next, asio::buffer(test::get("/v2/health/live")));
        // The idle ones give their places.
        CHECK(test::co_run(io, test::read_all(idle)).empty());
    }
}

TEST_SUITE_END();

} // namespace test_server_refusals
