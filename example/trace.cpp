// Records what a server and its device do, and writes it as a file for Perfetto (ui.perfetto.dev).
#include <coaccel/coaccel.hpp>
#include <coaccel/telemetry/trace_json.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[trace_request
// Doubles the numbers of a request. `parent` is the header "traceparent" of the request; it may be empty.
asio::awaitable<ca::result<std::vector<float>>> answer(ca::device gpu, ca::trace_buffer& trace, std::string_view parent,
                                                       const std::vector<float>& numbers)
{
    ca::trace_event request;
    request.kind = ca::trace_kind::request;
    request.name = trace.intern("POST /double");
    request.id = trace.new_id();
    request.begin = ca::trace_event::clock::now();

    // Arrows lead from the request to everything that the device does for it.
    const auto traced = gpu.with({.trace = request.id});
    BOOST_OUTCOME_CO_TRY(auto x, co_await traced.async_upload(numbers));
    BOOST_OUTCOME_CO_TRYV(co_await traced.async_exec(ca::blas::scal<float>{.x = x, .n = numbers.size(), .alpha = 2}));
    BOOST_OUTCOME_CO_TRY(auto doubled, co_await traced.async_download(x));

    request.duration = ca::trace_event::clock::now() - request.begin;
    if (const auto caller = ca::parse_traceparent(parent))
        trace.add_traceparent(request.id, caller.value());
    trace.add(request);
    co_return doubled;
}
//]

asio::awaitable<ca::result<bool>> run(std::string path)
{
    //[trace_device
    const auto trace = ca::trace_buffer::create(); // the latest 16384 events
    ca::device_options options{};
    options.trace = trace.get(); // the device shares the ownership
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    //]

    const std::vector<float> numbers{1, 2, 3};
    const std::string_view parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    BOOST_OUTCOME_CO_TRY(const auto doubled, co_await answer(gpu, *trace, parent, numbers));

    //[trace_write
    BOOST_OUTCOME_CO_TRYV(ca::telemetry::write_trace(*trace, path));
    //]
    std::cout << trace->added() << " events in " << path << '\n';
    co_return doubled == std::vector<float>{2, 4, 6};
}

} // namespace

int main()
{
    const auto path =
        std::filesystem::temp_directory_path() / ("coaccel_trace_" + std::to_string(::getpid()) + ".json");
    asio::io_context io;
    auto done = asio::co_spawn(io, run(path.string()), asio::use_future);
    io.run();
    const auto right = done.get();
    if (!right) {
        std::cerr << right.error().message() << '\n';
        return 1;
    }
    const bool written = std::filesystem::file_size(path) > 0;
    std::filesystem::remove(path);
    return right.value() && written ? 0 : 1;
}
