#include "support/devices.hpp"
#include "support/example_plans.hpp"
#include "support/numbers.hpp"

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <span>
#include <vector>

namespace test_device_temporary_range {

namespace {

using namespace coaccel;
using test::await;
using test::make_device;

// A function, because g++ 12 does not support braced initializers inside co_await expressions.
std::vector<float> numbers(float first = 1)
{
    return {first, first + 1, first + 2};
}

asio::awaitable<result<void>> append(device gpu, const buffer<float>& from, std::vector<float>& to)
{
    BOOST_OUTCOME_CO_TRY(const auto elements, co_await gpu.async_download(from));
    to.insert(to.end(), elements.begin(), elements.end());
    co_return success();
}

asio::awaitable<result<std::vector<float>>> upload_temporaries(device gpu)
{
    using namespace asio::experimental::awaitable_operators;
    BOOST_OUTCOME_CO_TRY(auto a, co_await gpu.async_upload(numbers()));
    BOOST_OUTCOME_CO_TRY(auto b, co_await gpu.with({.retry = retry::idempotent}).async_upload(numbers()));
    const auto c = co_await gpu.async_upload(numbers(), asio::use_awaitable);
    const auto [ec, d] = co_await gpu.async_upload(numbers(), asio::as_tuple(asio::use_awaitable));
    CHECK_FALSE(ec);
    co_await (gpu.async_write(c, numbers(), asio::use_awaitable) && gpu.async_write(d, numbers(), asio::use_awaitable));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_write(a, numbers(4)));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_write(b.ref(), numbers(7)));
    std::vector<float> out;
    BOOST_OUTCOME_CO_TRYV(co_await append(gpu, a, out));
    BOOST_OUTCOME_CO_TRYV(co_await append(gpu, b, out));
    BOOST_OUTCOME_CO_TRYV(co_await append(gpu, c, out));
    BOOST_OUTCOME_CO_TRYV(co_await append(gpu, d, out));
    co_return out;
}

TEST_SUITE_BEGIN("temporary ranges");

TEST_CASE("a temporary range works with any token that starts the operation when awaited")
{
    asio::io_context io;
    auto gpu = make_device(io, test::pool_options());
    const auto got = test::co_run(io, upload_temporaries(gpu));
    REQUIRE(got);
    CHECK(got.value() == std::vector<float>{4, 5, 6, 7, 8, 9, 1, 2, 3, 1, 2, 3});
}

TEST_CASE("a temporary view works with any token")
{
    asio::io_context io;
    auto gpu = make_device(io, test::pool_options());
    std::vector<float> data = numbers();
    int done = 0;
    const auto count = [&](error_code ec, auto&&...) {
        CHECK_FALSE(ec);
        ++done;
    };
    auto x = await(io, gpu.async_upload(data)).value();
    gpu.async_upload(std::span<float>(data), count);
    gpu.async_upload(std::span<const float>(data), count);
    gpu.async_upload(data, count);
    gpu.async_write(x, std::span<float>(data), count);
    gpu.async_write(x.ref(), std::span<const float, 3>(data), count);
    gpu.async_write(x, data, count);
    test::run_until(io, [&] { return done == 6; });
}

asio::awaitable<result<void>> run_temporaries(plan p, std::vector<float>& y)
{
    BOOST_OUTCOME_CO_TRYV(co_await p.async_run(from(test::numbers(test::plan_elements)), to(y)));
    CHECK(y == test::expected(test::numbers(test::plan_elements)));
    BOOST_OUTCOME_CO_TRYV(co_await p.with({.retry = retry::idempotent})
                              .async_run(from(test::numbers(test::plan_elements)), to(std::vector<float>(y.size()))));
    co_await p.async_run(from(test::numbers(test::plan_elements)), to(y), asio::use_awaitable);
    co_return success();
}

TEST_CASE("a temporary range in a run works with any token that starts it when awaited")
{
    asio::io_context io;
    auto gpu = make_device(io, test::pool_options());
    const plan p = await(io, gpu.async_load(test::axpy_plan())).value();
    std::vector<float> y(test::plan_elements);
    CHECK(test::co_run(io, run_temporaries(p, y)));
    // A view refers to memory that may live longer.
    const auto x = test::numbers(test::plan_elements);
    bool ended = false;
    p.async_run(from(std::span(x)), to(std::span(y)), [&](error_code ec) { ended = !ec; });
    test::run_until(io, [&] { return ended; });
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_temporary_range
