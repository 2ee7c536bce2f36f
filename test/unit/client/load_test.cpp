#include "client/load_test.hpp"

#include "protocol_server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <doctest/doctest.h>

#include <csignal>

namespace {

namespace client = coaccel::client;
using namespace std::chrono_literals;
using test::protocol_server;

client::load_options load_of(const protocol_server& server, std::uint64_t count)
{
    const client::tensor x{"x", "FP32", {1, 4}, std::string(16, '\0')};
    const auto body = client::make_infer_body({x}, client::tensor_form::binary).value();
    return {.where = server.address(),
            .timeout = 60s,
            .connections = 4,
            .count = count,
            .request = {"POST", "/v2/models/double/infer", body.body, body.json_bytes}};
}

} // namespace

TEST_SUITE_BEGIN("client load test");

TEST_CASE("each connection is kept for all its requests")
{
    for (const int threads : {1, 3, 9}) {
        const protocol_server server;
        auto options = load_of(server, 500);
        options.threads = threads;
        const auto report = client::run_load(options);
        CHECK(report.latencies.count() == 500);
        CHECK(report.failed() == 0);
        CHECK(report.connections <= 4);
        CHECK(server.connections() == report.connections);
        CHECK(server.requests() == 500);
        CHECK(report.rate() > 0);
        CHECK(!report.interrupted);
    }
}

TEST_CASE("a test whose time ends with a line of progress ends")
{
    // Both are due at the same time.
    const protocol_server server([](const auto&, auto& reply) {
        reply.result(429);
        return protocol_server::action::reply;
    });
    for (int i = 0; i < 3; ++i) {
        auto options = load_of(server, 0);
        options.count.reset();
        options.duration = std::chrono::seconds(1);
        options.connections = 2;
        const auto report = client::run_load(options);
        CHECK(report.failed() > 0);
        CHECK(report.elapsed < std::chrono::seconds(20));
    }
}

TEST_CASE("a server that closes connections costs no request")
{
    const protocol_server server([](const auto&, auto&) { return protocol_server::action::reply_and_close; });
    const auto report = client::run_load(load_of(server, 50));
    CHECK(report.latencies.count() == 50);
    CHECK_MESSAGE(report.failed() == 0, client::report_text(report));
    CHECK(report.connections == server.connections());
}

TEST_CASE("failures are counted by kind")
{
    std::atomic<int> n = 0;
    const protocol_server server([&n](const auto&, auto& reply) {
        switch (n++ % 4) {
        case 0:
            reply.result(429);
            reply.body() = R"({"error":"queue full"})";
            break;
        case 1: return protocol_server::action::garbage;
        case 2: reply.result(503); break;
        default: break;
        }
        return protocol_server::action::reply;
    });
    auto options = load_of(server, 40);
    options.connections = 1;
    const auto report = client::run_load(options);
    CHECK(report.latencies.count() == 10);
    CHECK(report.failed() == 30);
    CHECK(report.failures.at("status 429") == 10);
    CHECK(report.failures.at("status 503") == 10);
    CHECK(report.examples.at("status 429") == R"({"error":"queue full"})");
    const auto text = client::report_text(report);
    CHECK(text.find("failed    30\n") != std::string::npos);
    CHECK(text.find("  10 x status 429: {\"error\":\"queue full\"}\n") != std::string::npos);
}

TEST_CASE("a server that closes before it answers is a failure")
{
    const protocol_server server([](const auto&, auto&) { return protocol_server::action::close; });
    auto options = load_of(server, 3);
    const auto report = client::run_load(options);
    CHECK(report.failures == std::map<std::string, std::uint64_t>{{"connection closed", 3}});
}

TEST_CASE("a server that does not answer runs into the timeout")
{
    const protocol_server server([](const auto&, auto&) { return protocol_server::action::hang; });
    auto options = load_of(server, 2);
    options.timeout = 20ms;
    CHECK(client::run_load(options).failures == std::map<std::string, std::uint64_t>{{"timeout", 2}});
}

TEST_CASE("without a server each request fails, and the test ends")
{
    client::server_address gone;
    {
        const protocol_server server;
        gone = server.address();
    }
    const auto report = client::run_load({.where = gone, .connections = 2, .count = 4, .request = {"GET", "/v2"}});
    CHECK(report.failures == std::map<std::string, std::uint64_t>{{"connection refused", 4}});
    CHECK(report.connections == 0);
    CHECK(report.latencies.count() == 0);
    CHECK(client::report_text(report).find("4 x connection refused") != std::string::npos);
}

TEST_CASE("a signal ends a test without end")
{
    std::atomic<int> n = 0;
    const protocol_server server([&n](const auto&, auto&) {
        if (++n == 20)
            std::raise(SIGINT);
        return protocol_server::action::reply;
    });
    auto options = load_of(server, 1);
    options.count.reset();
    const auto report = client::run_load(options);
    CHECK(report.interrupted);
    CHECK(report.latencies.count() >= 20);
    CHECK(report.failed() == 0);
}

TEST_CASE("progress is told while requests run")
{
    std::atomic<bool> told = false;
    const protocol_server server;
    auto options = load_of(server, 1);
    options.count.reset();
    std::uint64_t answered = 0;
    options.on_progress = [&](const client::load_progress& p) {
        answered = p.answered;
        if (!told.exchange(true))
            std::raise(SIGINT);
    };
    const auto report = client::run_load(options);
    CHECK(told);
    CHECK(answered > 0);
    CHECK(report.latencies.count() >= answered);
}

TEST_CASE("the report as JSON")
{
    client::load_report report;
    report.elapsed = 2s;
    report.latencies.add(1ms);
    report.latencies.add(3ms);
    report.failures["timeout"] = 5;
    const auto json = boost::json::parse(client::report_json(report)).as_object();
    CHECK(json.at("answered").to_number<int>() == 2);
    CHECK(json.at("failed").to_number<int>() == 5);
    CHECK(json.at("per_second").as_double() == doctest::Approx(1));
    CHECK(json.at("latency_ms").as_object().at("mean").as_double() == doctest::Approx(2));
    CHECK(json.at("failures").as_object().at("timeout").to_number<int>() == 5);
}

TEST_SUITE_END();
