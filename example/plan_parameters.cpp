// A plan with numbers that differ from run to run: a moving average whose rate each request chooses.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <array>
#include <cmath>
#include <iostream>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t size = 4;
using sample = std::array<float, size>;

//[plan_parameters_build
// average = keep * average + rate * x
ca::result<ca::plan_description> make_average()
{
    using scal = ca::blas::scal<float>;
    using axpy = ca::blas::axpy<float>;
    ca::plan_builder b("average");
    const auto x = b.input<float>(size, "x");
    const auto keep = b.parameter<float>("keep");
    const auto rate = b.parameter<float>("rate");
    const auto average = b.state<float>(size, "average");
    const auto y = b.output<float>(size, "y");
    b.add(scal{.x = average, .n = size}, bind(&scal::alpha, keep));
    b.add(axpy{.x = x, .y = average, .n = size}, bind(&axpy::alpha, rate));
    b.add(ca::memory::copy<float>{.src = average, .dst = y});
    return b.finish();
}
//]

asio::awaitable<ca::result<bool>> run()
{
    const auto ex = co_await asio::this_coro::executor;
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(const auto gpu, co_await ca::device::async_create(ex, options));
    BOOST_OUTCOME_CO_TRY(const auto description, make_average());
    BOOST_OUTCOME_CO_TRY(const auto average, co_await gpu.async_load(description));
    float wanted = 0;
    bool right = true;
    for (int i = 1; i <= 10; ++i) {
        const float rate = 1.0f / static_cast<float>(i);
        const sample x{static_cast<float>(i), 0, 0, 0};
        sample y{};
        //[plan_parameters_run
        BOOST_OUTCOME_CO_TRYV(co_await average.async_run(ca::from(x), ca::value(1 - rate), ca::value(rate), ca::to(y)));
        //]
        wanted = (1 - rate) * wanted + rate * x[0];
        right = right && std::abs(y[0] - wanted) < 1e-4f;
        std::cout << "average of 1 to " << i << ": " << y[0] << '\n';
    }
    co_return right;
}

} // namespace

int main()
{
    asio::io_context io;
    auto done = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto right = done.get();
    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
