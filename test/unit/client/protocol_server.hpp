#ifndef COACCEL_TEST_UNIT_CLIENT_PROTOCOL_SERVER_HPP
#define COACCEL_TEST_UNIT_CLIENT_PROTOCOL_SERVER_HPP

#include "client/infer_body.hpp"
#include "client/server_address.hpp"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test {

/// A server of the Open Inference Protocol with the model "double": x, FP32, [-1, 4], gives y = 2 x.
class protocol_server {
public:
    using request = boost::beast::http::request<boost::beast::http::string_body>;
    using response = boost::beast::http::response<boost::beast::http::string_body>;

    /// What happens instead of a reply.
    enum class action { reply, reply_and_close, hang, close, garbage };
    /// May change the reply, and says what happens with it.
    using hook = std::function<action(const request&, response&)>;

    explicit protocol_server(hook change = {}) : change_(std::move(change))
    {
        boost::asio::co_spawn(io_, accept(), boost::asio::detached);
        thread_ = std::thread([this] { io_.run(); });
    }
    ~protocol_server()
    {
        io_.stop();
        thread_.join();
    }

    coaccel::client::server_address address() const
    {
        return {"127.0.0.1", std::to_string(acceptor_.local_endpoint().port()), ""};
    }
    std::string url() const { return "http://" + address().text(); }
    std::uint64_t connections() const { return connections_; }
    std::uint64_t requests() const { return requests_; }

private:
    using tcp = boost::asio::ip::tcp;
    static constexpr auto as_values = boost::asio::as_tuple(boost::asio::use_awaitable);

    boost::asio::awaitable<void> accept()
    {
        for (;;) {
            auto [ec, socket] = co_await acceptor_.async_accept(as_values);
            if (ec)
                co_return;
            ++connections_;
            boost::asio::co_spawn(io_, serve(std::move(socket)), boost::asio::detached);
        }
    }

    boost::asio::awaitable<void> serve(tcp::socket socket)
    {
        namespace http = boost::beast::http;
        boost::beast::flat_buffer buffer;
        for (;;) {
            request got;
            const auto [not_read, n] = co_await http::async_read(socket, buffer, got, as_values);
            if (not_read)
                co_return;
            ++requests_;
            response made = answer(got);
            const auto what = change_ ? change_(got, made) : action::reply;
            made.prepare_payload();
            if (what == action::close)
                co_return;
            if (what == action::hang) {
                boost::asio::steady_timer never(io_, boost::asio::steady_timer::time_point::max());
                auto waiting = never.async_wait(as_values);
                co_await std::move(waiting);
            }
            if (what == action::garbage) {
                const std::string text = "SSH-2.0-something\r\n\r\n";
                auto writing = boost::asio::async_write(socket, boost::asio::buffer(text), as_values);
                co_await std::move(writing);
                co_return;
            }
            const auto [not_written, m] = co_await http::async_write(socket, made, as_values);
            if (not_written || what == action::reply_and_close)
                co_return;
        }
    }

    static response error(unsigned status, const std::string& message)
    {
        response r;
        r.result(status);
        r.body() = boost::json::serialize(boost::json::object{{"error", message}});
        return r;
    }

    static response answer(const request& got)
    {
        const std::string target(got.target());
        response r;
        if (target == "/v2/health/live" || target == "/v2/health/ready" || target == "/v2/models/double/ready")
            return r;
        if (target == "/v2")
            r.body() = R"({"name":"test","version":"1","extensions":["binary_tensor_data"]})";
        else if (target == "/v2/models/stats" || target == "/v2/models/double/stats")
            r.body() = R"({"model_stats":[{"name":"double","version":"1","inference_count":3}]})";
        else if (target == "/v2/repository/index" && got.method() == boost::beast::http::verb::post)
            r.body() = R"([{"name":"double","version":"1","state":"READY","reason":""}])";
        else if (target == "/v2/models/double" || target == "/v2/models/double/versions/1")
            r.body() = R"({"name":"double","versions":["1"],"inputs":[{"name":"x","datatype":"FP32","shape":[-1,4]}],)"
                       R"("outputs":[{"name":"y","datatype":"FP32","shape":[-1,4]}]})";
        else if (target == "/v2/models/double/infer" || target == "/v2/models/double/versions/1/infer")
            return infer(got);
        else
            return error(404, "unknown: " + target);
        return r;
    }

    static response infer(const request& got)
    {
        namespace client = coaccel::client;
        const auto field = got.find("Inference-Header-Content-Length");
        const bool binary = field != got.end();
        const std::size_t json_bytes = binary ? std::stoul(std::string(field->value())) : got.body().size();
        boost::system::error_code ec;
        auto document = boost::json::parse(std::string_view(got.body()).substr(0, json_bytes), ec);
        const auto* inputs = ec || !document.is_object() ? nullptr : document.get_object().if_contains("inputs");
        if (!inputs)
            return error(400, "no inputs");
        // An input has the same members as an output of a reply.
        const std::string as_reply = boost::json::serialize(boost::json::object{{"outputs", *inputs}});
        const auto parsed = client::parse_infer_reply(as_reply + got.body().substr(json_bytes), as_reply.size());
        if (!parsed)
            return error(400, parsed.error().message());
        if (parsed.value().size() != 1 || parsed.value()[0].name != "x" || parsed.value()[0].datatype != "FP32" ||
            parsed.value()[0].shape.size() != 2 || parsed.value()[0].shape[1] != 4)
            return error(400, "the input must be x, FP32, [-1, 4]");
        auto y = parsed.value()[0];
        y.name = "y";
        for (std::size_t at = 0; at < y.data.size(); at += sizeof(float)) {
            float v = 0;
            std::memcpy(&v, y.data.data() + at, sizeof v);
            v *= 2;
            std::memcpy(y.data.data() + at, &v, sizeof v);
        }
        return reply_with(y, binary);
    }

    static response reply_with(const coaccel::client::tensor& y, bool binary)
    {
        namespace client = coaccel::client;
        // The other way round.
        const auto form = binary ? client::tensor_form::binary : client::tensor_form::json;
        auto body = client::make_infer_body({y}, form).value().body;
        const std::string_view inputs = "\"inputs\":";
        body.replace(body.find(inputs), inputs.size(), "\"outputs\":");
        response r;
        if (binary)
            r.set("Inference-Header-Content-Length", std::to_string(body.size() - y.data.size()));
        r.body() = std::move(body);
        return r;
    }

    boost::asio::io_context io_{1};
    tcp::acceptor acceptor_{io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
    hook change_;
    std::atomic<std::uint64_t> connections_{0};
    std::atomic<std::uint64_t> requests_{0};
    std::thread thread_;
};

} // namespace test

#endif
