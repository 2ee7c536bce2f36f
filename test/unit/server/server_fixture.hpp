#ifndef COACCEL_TEST_UNIT_SERVER_SERVER_FIXTURE_HPP
#define COACCEL_TEST_UNIT_SERVER_SERVER_FIXTURE_HPP

#include "support/co_run.hpp"
#include "support/temporary_folder.hpp"
#include "unit/telemetry/http_client.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/plan/plan_set_builder.hpp>
#include <coaccel/server/server.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// y = factor * x, rows of four floats, for batches of these sizes.
inline coaccel::plan_set_description scale_set(float factor, std::vector<std::uint32_t> sizes = {1, 8})
{
    namespace ca = coaccel;
    ca::plan_set_builder set("scale");
    for (const auto rows : sizes) {
        auto& b = set.plan("scale" + std::to_string(rows));
        const std::uint64_t all = rows * 4;
        const auto x = b.input<float>(ca::batch_of(rows, {{4}}), "x");
        const auto y = b.output<float>(ca::batch_of(rows, {{4}}), "y");
        b.add(ca::memory::copy<float>{.src = x, .dst = y});
        b.add(ca::blas::scal<float>{.x = y, .n = all, .alpha = factor});
    }
    auto made = set.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

inline void save_model(const std::string& folder, const std::string& name, int version,
                       const coaccel::plan_set_description& set)
{
    const auto where = std::filesystem::path(folder) / name / std::to_string(version);
    std::filesystem::create_directories(where);
    const auto saved = set.save((where / "model.plan").string());
    REQUIRE_MESSAGE(saved, saved.error().message());
}

/// A request for the model of scale_set, as JSON.
inline std::string json_request(std::string data, int rows = 1, const std::string& more = {})
{
    return "{\"inputs\":[{\"name\":\"x\",\"shape\":[" + std::to_string(rows) + ",4],\"datatype\":\"FP32\",\"data\":[" +
           std::move(data) + "]}]" + more + "}";
}

/// An HTTP request with a body.
inline std::string post(const std::string& target, const std::string& body, const std::string& fields = {})
{
    return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + fields + "\r\n" + body;
}

inline std::string get(const std::string& target, const std::string& fields = {})
{
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

/// One reply of a connection.
struct http_answer {
    int status = 0;
    std::string head;
    std::string body;
};

/// Reads one reply; status 0 if the connection ends before.
inline asio::awaitable<http_answer> read_answer(tcp::socket& socket, std::string& rest)
{
    http_answer a;
    for (;;) {
        const auto end = rest.find("\r\n\r\n");
        if (end != std::string::npos) {
            a.head = rest.substr(0, end + 2);
            a.status = status_of(a.head);
            const auto field = a.head.find("Content-Length: ");
            const std::size_t size = field == std::string::npos ? 0 : std::stoul(a.head.substr(field + 16));
            if (a.status < 200) {
                rest.erase(0, end + 4);
                continue;
            }
            if (rest.size() >= end + 4 + size) {
                a.body = rest.substr(end + 4, size);
                rest.erase(0, end + 4 + size);
                co_return a;
            }
        }
        char piece[4096];
        const auto [ec, n] = co_await socket.async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
        if (ec) {
            a.status = 0;
            co_return a;
        }
        rest.append(piece, n);
    }
}

inline asio::awaitable<http_answer> ask(std::uint16_t port, std::string request)
{
    tcp::socket socket = co_await connect_to(port);
    co_await send(socket, std::move(request));
    std::string rest;
    co_return co_await read_answer(socket, rest);
}

/// A server on the CPU with a folder of its own.
struct server_fixture {
    server_fixture() : metrics(io.get_executor())
    {
        options.port = 0;
        options.model_folder = folder.path();
        coaccel::device_options cpu;
        cpu.kind = coaccel::device_kind::host;
        options.devices = {cpu};
        options.poll_interval = {};
        options.io_threads = 1;
    }

    ~server_fixture()
    {
        if (serving)
            stop();
    }

    template <class Deferred>
    auto await(Deferred deferred)
    {
        return co_run(io, std::move(deferred)(asio::use_awaitable));
    }

    coaccel::error_code try_start()
    {
        auto made = await(coaccel::server::server::async_create(io.get_executor(), options, metrics));
        if (!made)
            return made.error();
        serving = std::move(made).value();
        return {};
    }

    void start()
    {
        const auto ec = try_start();
        REQUIRE_MESSAGE(!ec, ec.message());
    }

    void stop(coaccel::shutdown mode = coaccel::shutdown::drain)
    {
        auto ended = await(serving->async_shutdown(mode));
        CHECK(ended);
        serving.reset();
    }

    http_answer ask(std::string request) { return co_run(io, test::ask(serving->port(), std::move(request))); }

    asio::io_context io{1};
    coaccel::telemetry::registry metrics;
    temporary_folder folder;
    coaccel::server::server_options options;
    std::optional<coaccel::server::server> serving;
};

} // namespace test

#endif
