// Two plans that work on one state: a running sum over requests of two sizes. The plans are saved to a file and loaded.

#include <coaccel/coaccel.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>

namespace {

namespace asio = boost::asio;
namespace ca = coaccel;

constexpr std::size_t width = 64;

//[plan_set_build
// Adds the rows of a request to a sum that is kept on the device, and returns the sum: one plan for each batch size.
ca::result<ca::plan_set_description> make_sums()
{
    ca::plan_set_builder set("sums");
    const auto sum = set.state<float>(width, "sum"); // common to the plans that use it
    for (const std::size_t rows : {1, 8}) {
        ca::plan_builder& b = set.plan("rows" + std::to_string(rows));
        const auto x = b.input<float>(rows * width, "x");
        const auto y = b.output<float>(width, "y");
        for (std::size_t i = 0; i < rows; ++i)
            b.add(ca::blas::axpy<float>{.x = x.subspan(i * width, width), .y = sum, .n = width, .alpha = 1});
        b.add(ca::memory::copy<float>{.src = sum, .dst = y});
    }
    return set.finish();
}
//]

asio::awaitable<ca::result<float>> run()
{
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(const auto made, make_sums());
    const std::string file = (std::filesystem::temp_directory_path() / "coaccel_sums.plan").string();
    //[plan_set_file
    BOOST_OUTCOME_CO_TRYV(made.save(file));
    BOOST_OUTCOME_CO_TRY(const auto description, ca::plan_set_description::load(file));
    //]
    std::filesystem::remove(file);
    std::array<float, width> one{};
    std::array<float, 8 * width> eight{};
    std::array<float, width> sum{};
    one.fill(1);
    eight.fill(0.5f);
    //[plan_set_run
    BOOST_OUTCOME_CO_TRY(const auto sums, co_await gpu.async_load(description));
    BOOST_OUTCOME_CO_TRYV(co_await sums["rows1"].async_run(ca::from(one), ca::to(sum)));   // every element is 1
    BOOST_OUTCOME_CO_TRYV(co_await sums["rows8"].async_run(ca::from(eight), ca::to(sum))); // 5
    //]
    BOOST_OUTCOME_CO_TRYV(co_await sums.async_unload());
    co_return sum[width - 1];
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto sum = running.get();

    if (sum)
        std::cout << "the sum is " << sum.value() << '\n';
    else
        std::cerr << sum.error().message() << '\n';
    return sum && sum.value() == 5 ? 0 : 1;
}
