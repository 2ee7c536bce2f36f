#include "http_client.hpp"
#include "support/devices.hpp"

#include <coaccel/telemetry/http_endpoint.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace test_telemetry_http_endpoint_collect {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using namespace std::chrono_literals;
using test::await;
using test::body_of;
using test::connected;
using test::exchange;
using test::last_request;
using test::read_all;
using test::status_of;

/// An endpoint whose registry is on another execution context, with a device that answers when `late` runs.
struct fixture {
    explicit fixture(http_endpoint_options o = {})
    {
        o.trace = [owned = options_alive] { return std::to_string(*owned); };
        kept = metrics.add(late_device, "late").value();
        endpoint.emplace(http_endpoint::start(io->get_executor(), metrics, o).value());
    }

    /// A request on its own connection, which waits for the registry.
    test::tcp::socket ask_metrics()
    {
        auto socket = connected(clients, endpoint->port());
        asio::write(socket, asio::buffer(last_request("GET", "/metrics")));
        test::run_until(*io, [&] { return begun.value() > 0; });
        return socket;
    }

    std::string reply_on(test::tcp::socket& socket)
    {
        std::optional<std::string> reply;
        asio::co_spawn(clients, read_all(socket),
                       [&](std::exception_ptr, std::string text) { reply = std::move(text); });
        test::run_until(*io, [&] {
            clients.restart();
            clients.poll();
            if (registry_runs)
                registry_io->restart(), registry_io->poll();
            return reply.has_value();
        });
        return std::move(*reply);
    }

    std::shared_ptr<int> options_alive = std::make_shared<int>(1);
    asio::io_context late, clients;
    std::optional<asio::io_context> registry_io{std::in_place};
    std::optional<asio::io_context> io{std::in_place};
    device late_device = test::make_device(late);
    registry metrics{registry_io->get_executor(), {.source_timeout = test::patience}};
    counter begun = metrics.add_counter("coaccel_telemetry_collections_total", "Collections of all metrics.").value();
    registration kept;
    std::optional<http_endpoint> endpoint;
    bool registry_runs = false;
};

TEST_SUITE_BEGIN("http_endpoint collect");

TEST_CASE("the endpoint's execution context is destroyed while a device owes the registry an answer")
{
    fixture f;
    const auto waits = f.ask_metrics();
    f.io.reset();
    f.endpoint.reset();
    // No part of the endpoint is left in the registry.
    CHECK(f.options_alive.use_count() == 1);
    bool ended = false;
    f.metrics.async_collect([&](error_code, const snapshot&) { ended = true; });
    test::run_until(f.late, [&] {
        f.registry_io->restart();
        f.registry_io->poll();
        return ended;
    });
}

TEST_CASE("the registry's execution context is destroyed while a request waits")
{
    fixture f;
    auto waits = f.ask_metrics();
    f.registry_io.reset();
    CHECK(status_of(f.reply_on(waits)) == 503);
    auto again = f.ask_metrics();
    CHECK(status_of(f.reply_on(again)) == 503);
}

TEST_CASE("a registry whose executor does not run: requests fail after the time limit and share one collection")
{
    http_endpoint_options o;
    o.write_timeout = 20ms;
    fixture f(o);
    for (int i = 0; i < 3; ++i) {
        auto waits = f.ask_metrics();
        const auto reply = f.reply_on(waits);
        CHECK(status_of(reply) == 503);
        CHECK(body_of(reply) == "the registry did not answer in time\n");
    }
    CHECK(f.begun.value() == 1);
    auto last = f.ask_metrics();
    CHECK(await(*f.io, f.endpoint->async_stop()));
}

TEST_CASE("a registry that runs again serves requests again")
{
    http_endpoint_options o;
    o.write_timeout = 20ms;
    fixture f(o);
    auto refused = f.ask_metrics();
    CHECK(status_of(f.reply_on(refused)) == 503);
    f.kept.remove();
    f.registry_runs = true;
    test::run_until(f.late, [&] {
        auto served = f.ask_metrics();
        return status_of(f.reply_on(served)) == 200;
    });
}

TEST_CASE("the destructor does not wait for the registry")
{
    http_endpoint_options o;
    o.write_timeout = 10 * test::patience;
    fixture f(o);
    auto waits = f.ask_metrics();
    f.endpoint.reset();
    CHECK(f.reply_on(waits).empty());
    test::run_out(*f.io);
    CHECK(f.options_alive.use_count() == 1);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_http_endpoint_collect
