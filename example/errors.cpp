// Errors as values, errors as exceptions, and how to distinguish kinds of errors.
#include <coaccel/coaccel.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <iostream>
#include <string_view>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[values
// The first error ends the function and becomes its result.
asio::awaitable<ca::result<float>> norm(ca::device gpu, const std::vector<float>& numbers)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
    co_return co_await gpu.async_exec(ca::blas::nrm2<float>{.x = x, .n = x.size()});
}
//]

//[exceptions
// The same with exceptions: use_awaitable throws boost::system::system_error.
asio::awaitable<float> norm_or_throw(ca::device gpu, const std::vector<float>& numbers)
{
    const auto x = co_await gpu.async_upload(numbers, asio::use_awaitable);
    co_return co_await gpu.async_exec(ca::blas::nrm2<float>{.x = x, .n = x.size()}, asio::use_awaitable);
}
//]

//[conditions
// Every error except operation_aborted belongs to one class of fault, which is sufficient for most programs.
std::string_view advice(const ca::error_code& ec)
{
    if (ec == asio::error::operation_aborted)
        return "the call was cancelled";
    if (ec == ca::fault::caller)
        return "correct the request";
    if (ec == ca::fault::busy)
        return "try again later";
    if (ec == ca::fault::context_lost)
        return "upload again and repeat";
    if (ec == ca::errc::plan_quarantined)
        return "find the requests that end contexts, then revive the plan";
    if (ec == ca::errc::buffer_suspect)
        return "trust the content, or clear it";
    if (ec == ca::fault::device_lost || ec == ca::fault::stopped)
        return "use another device";
    return "ask the library that reported it";
}
//]

bool expect(const ca::error_code& got, ca::errc wanted, std::string_view what_to_do)
{
    std::cout << got.message() << ": " << advice(got) << '\n';
    return got == wanted && advice(got) == what_to_do;
}

asio::awaitable<bool> throws(ca::device gpu)
{
    const std::vector<float> nothing;
    try {
        co_await norm_or_throw(gpu, nothing);
    } catch (const boost::system::system_error& e) {
        co_return expect(e.code(), ca::errc::invalid_argument, "correct the request");
    }
    co_return false;
}

asio::awaitable<ca::result<bool>> run()
{
    ca::device_options options;
    options.kind = ca::device_kind::host; // its memory can be limited
    options.host.memory_limit = 1 << 20;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));

    const std::vector<float> numbers{3, 4};
    BOOST_OUTCOME_CO_TRY(const float by_value, co_await norm(gpu, numbers));
    const float by_exception = co_await norm_or_throw(gpu, numbers);
    bool right = by_value == 5 && by_exception == 5;

    right = co_await throws(gpu) && right;

    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
    const auto beyond = co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = 3});
    right = beyond.has_error() && expect(beyond.error(), ca::errc::out_of_bounds, "correct the request") && right;

    const auto huge = co_await gpu.async_alloc<float>(1 << 20);
    right = huge.has_error() && expect(huge.error(), ca::errc::out_of_memory, "try again later") && right;

    const ca::exec_options late{.deadline = std::chrono::steady_clock::now()};
    const auto missed = co_await gpu.with(late).async_exec(ca::blas::asum<float>{.x = x, .n = 2});
    right = missed.has_error() && expect(missed.error(), ca::errc::deadline_exceeded, "try again later") && right;

    const auto [ec, sum] =
        co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = 2}, asio::as_tuple(asio::use_awaitable));
    right = !ec && sum == 7 && right;

    // poisoned_request.cpp and durable_state.cpp show the causes of these errors.
    right = expect(ca::errc::plan_quarantined, ca::errc::plan_quarantined,
                   "find the requests that end contexts, then revive the plan") &&
            right;
    right = expect(ca::errc::buffer_suspect, ca::errc::buffer_suspect, "trust the content, or clear it") && right;

    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_shutdown());
    const auto gone = co_await gpu.async_download(x);
    right = gone.has_error() && expect(gone.error(), ca::errc::device_stopped, "use another device") && right;
    co_return right;
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
