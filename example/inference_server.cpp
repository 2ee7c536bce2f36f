// An inference server inside a program of one's own: it makes a model, serves it from a folder, and asks it over HTTP.
// The program coaccel-serve is the same server with a configuration file.
#include <coaccel/coaccel.hpp>
#include <coaccel/plan/plan_set_builder.hpp>
#include <coaccel/server/server.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace telemetry = coaccel::telemetry;

namespace {

constexpr std::uint32_t features = 4;

//[server_model
// The score of each row of x, for batches of 1, 8 and 64 rows. The shapes contain the number of rows.
ca::result<void> save_model(const std::filesystem::path& folder)
{
    ca::plan_set_builder set("score");
    for (const std::uint32_t rows : {1u, 8u, 64u}) {
        auto& b = set.plan("score" + std::to_string(rows));
        const auto x = b.input<float>(ca::batch_of(rows, {{features}}), "x");
        const auto w = b.constant<float>(std::vector<float>{1, 2, 3, 4}, "w");
        const auto y = b.output<float>(ca::batch_of(rows, {}), "y");
        b.add(ca::blas::gemm<float>{.a = w, .b = x, .c = y, .m = 1, .n = rows, .k = features});
    }
    BOOST_OUTCOME_TRY(const auto described, set.finish());
    std::filesystem::create_directories(folder / "score" / "1");
    return described.save((folder / "score" / "1" / "model.plan").string());
}
//]

asio::awaitable<std::string> ask(std::uint16_t port, std::string target, std::string body)
{
    beast::tcp_stream stream(co_await asio::this_coro::executor);
    const asio::ip::tcp::endpoint where(asio::ip::address_v4::loopback(), port);
    co_await stream.async_connect(where, asio::use_awaitable);
    http::request<http::string_body> asked(http::verb::post, target, 11);
    asked.set(http::field::host, "localhost");
    asked.body() = std::move(body);
    asked.prepare_payload();
    co_await http::async_write(stream, asked, asio::use_awaitable);
    beast::flat_buffer buffer;
    http::response<http::string_body> reply;
    co_await http::async_read(stream, buffer, reply, asio::use_awaitable);
    co_return reply.body();
}

asio::awaitable<ca::result<bool>> run(std::filesystem::path folder)
{
    BOOST_OUTCOME_CO_TRYV(save_model(folder));
    const auto executor = co_await asio::this_coro::executor;
    //[server_start
    ca::server::server_options options;
    options.port = 0; // the system chooses one
    options.model_folder = folder.string();
    ca::device_options cpu;
    cpu.kind = ca::device_kind::host;
    options.devices = {cpu};
    options.io_threads = 1; // one thread runs the io_context
    const telemetry::registry metrics(executor);
    BOOST_OUTCOME_CO_TRY(const auto serving, co_await ca::server::server::async_create(executor, options, metrics));
    std::cout << "the live page is at http://127.0.0.1:" << serving.port() << "/\n";
    //]
    const std::string request = R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 4],
                                    "data": [[1, 1, 1, 1], [0, 0, 0, 1]]}]})";
    const std::string answer = co_await ask(serving.port(), "/v2/models/score/infer", request);
    std::cout << answer << '\n';
    //[server_stop
    BOOST_OUTCOME_CO_TRYV(co_await serving.async_shutdown(ca::shutdown::drain));
    //]
    co_return answer.find("\"data\":[10,4]") != std::string::npos;
}

} // namespace

int main()
{
    const auto folder = std::filesystem::temp_directory_path() / ("inference_server-" + std::to_string(::getpid()));
    bool right = false;
    asio::io_context io(1);
    asio::co_spawn(io, run(folder), [&](std::exception_ptr e, ca::result<bool> r) {
        if (e)
            std::rethrow_exception(e);
        if (!r)
            std::cerr << r.error().message() << '\n';
        else
            right = r.value();
    });
    io.run();
    std::filesystem::remove_all(folder);
    return right ? 0 : 1;
}
