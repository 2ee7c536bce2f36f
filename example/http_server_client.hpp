// The clients with which http_server.cpp tries itself.
#ifndef COACCEL_EXAMPLE_HTTP_SERVER_CLIENT_HPP
#define COACCEL_EXAMPLE_HTTP_SERVER_CLIENT_HPP

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

// The trace to which all requests of the clients belong, and the event of the client in it.
inline const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
inline const std::string client_event = "00f067aa0ba902b7";

inline request post(const char* target, const char* body)
{
    request asked(http::verb::post, target, 11);
    asked.set("traceparent", "00-" + trace_id + '-' + client_event + "-01");
    asked.body() = body;
    return asked;
}

inline asio::awaitable<response> ask(beast::tcp_stream& stream, request asked)
{
    asked.set(http::field::host, "localhost");
    asked.prepare_payload();
    co_await http::async_write(stream, asked, asio::use_awaitable);
    beast::flat_buffer buffer;
    response reply;
    co_await http::async_read(stream, buffer, reply, asio::use_awaitable);
    co_return reply;
}

// The body of a reply that succeeds.
inline asio::awaitable<std::string> get(tcp::endpoint from, const char* target)
{
    beast::tcp_stream stream(co_await asio::this_coro::executor);
    stream.expires_after(std::chrono::seconds(30));
    co_await stream.async_connect(from, asio::use_awaitable);
    const request asked(http::verb::get, target, 11);
    const response reply = co_await ask(stream, asked);
    co_return reply.result_int() == 200 ? reply.body() : std::string();
}

// Whether the reply belongs to the trace of the client, and names an event of the server.
inline bool is_traced(const response& reply)
{
    const std::string field(reply["traceparent"]);
    return field.starts_with("00-" + trace_id + '-') && field.find(client_event) == field.npos;
}

inline asio::awaitable<bool> client(tcp::endpoint server)
{
    beast::tcp_stream stream(co_await asio::this_coro::executor);
    stream.expires_after(std::chrono::seconds(30));
    co_await stream.async_connect(server, asio::use_awaitable);
    const response ones = co_await ask(stream, post("/score", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"));
    const response one = co_await ask(stream, post("/score", "6 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"));
    const response nothing = co_await ask(stream, post("/score", ""));
    const response unknown = co_await ask(stream, post("/else", "1"));
    std::cout << ones.body() << ", " << one.body() << ", " << nothing.body() << '\n';
    const std::vector<unsigned> statuses{ones.result_int(), one.result_int(), nothing.result_int(),
                                         unknown.result_int()};
    const std::vector<unsigned> expected{200, 200, 400, 404};
    co_return (statuses == expected && ones.body() == "8.000000" && one.body() == "3.000000" && is_traced(ones));
}

inline bool has_all(const std::string& text, const std::vector<std::string>& parts)
{
    return std::ranges::all_of(parts, [&](const std::string& part) { return text.find(part) != text.npos; });
}

// Two clients at the same time, and what the second port tells of their requests afterwards.
inline asio::awaitable<bool> try_it(tcp::endpoint server, tcp::endpoint page)
{
    using namespace asio::experimental::awaitable_operators;
    const auto [first, second] = co_await (client(server) && client(server));
    const std::string metrics = co_await get(page, "/metrics");
    const std::string events = co_await get(page, "/trace");
    const std::vector<std::string> samples{
        "http_scores_total{outcome=\"answered\"} 4\n", "http_scores_total{outcome=\"failed\"} 2\n",
        "http_score_seconds_count 6\n", "coaccel_batcher_requests_total{batcher=\"score\",outcome=\"completed\"} 4\n",
        "coaccel_plan_runs_total{device=\"gpu0\",plan=\"score"};
    const std::vector<std::string> traced{"\"POST /score\"", "\"trace_id\":\"" + trace_id + '"', "\"cat\":\"batch\"",
                                          "\"cat\":\"run\""};
    std::cout << metrics.substr(std::min(metrics.find("# HELP http_scores_total"), metrics.size()));
    co_return (first && second && has_all(metrics, samples) && has_all(events, traced));
}

#endif
