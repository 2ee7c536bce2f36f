// A small classifier as a plan: written down once, loaded on a device, and run with host memory in and out.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t inputs = 1024;
constexpr std::size_t hidden = 512;
constexpr std::size_t classes = 10;

using image = std::array<float, inputs>;
using scores = std::array<float, classes>;

// Column-major: element (row, column) is at row + column * rows.
struct weights {
    std::vector<float> first;  // hidden x inputs
    std::vector<float> second; // classes x hidden
};

//[plan_build
// y = second * (first * x)
ca::result<ca::plan_description> make_classifier(const weights& w)
{
    ca::plan_builder b("classify");
    const auto x = b.input<float>(inputs, "x");
    const auto first = b.constant<float>(w.first, "first");
    const auto second = b.constant<float>(w.second, "second");
    const auto h = b.scratch<float>(hidden, "h");
    const auto y = b.output<float>(classes, "y");
    b.add(ca::blas::gemv<float>{.a = first, .x = x, .y = h, .m = hidden, .n = inputs});
    b.add(ca::blas::gemv<float>{.a = second, .x = h, .y = y, .m = classes, .n = hidden});
    return b.finish();
}
//]

// A number between -1 and 1 for each index.
float number(std::size_t i)
{
    return static_cast<float>(i * 7919 % 2001) / 1000 - 1;
}

weights make_weights()
{
    weights w{std::vector<float>(hidden * inputs), std::vector<float>(classes * hidden)};
    for (std::size_t i = 0; i < w.first.size(); ++i)
        w.first[i] = number(i) / 32;
    for (std::size_t i = 0; i < w.second.size(); ++i)
        w.second[i] = number(3 * i + 1) / 32;
    return w;
}

image make_image(std::size_t which)
{
    image x;
    for (std::size_t i = 0; i < inputs; ++i)
        x[i] = number(which * inputs + i);
    return x;
}

// The product of a matrix and a vector, in plain loops.
std::vector<double> multiply(const std::vector<float>& matrix, const std::vector<double>& x, std::size_t rows)
{
    std::vector<double> y(rows);
    for (std::size_t column = 0; column < x.size(); ++column)
        for (std::size_t row = 0; row < rows; ++row)
            y[row] += matrix[row + column * rows] * x[column];
    return y;
}

bool is_right(const weights& w, const image& x, const scores& y)
{
    const auto h = multiply(w.first, {x.begin(), x.end()}, hidden);
    const auto expected = multiply(w.second, h, classes);
    for (std::size_t i = 0; i < classes; ++i)
        if (!(std::abs(y[i] - expected[i]) < 1e-3))
            return false;
    return true;
}

//[plan_run
// One client: each request is one run. Clients run at the same time, up to the number of instances.
asio::awaitable<ca::result<int>> ask(ca::plan classify, const weights& w, std::size_t first, std::size_t requests)
{
    int right = 0;
    for (std::size_t i = 0; i < requests; ++i) {
        const image x = make_image(first + i);
        scores y{};
        BOOST_OUTCOME_CO_TRYV(co_await classify.with(ca::within(10s)).async_run(ca::from(x), ca::to(y)));
        right += is_right(w, x, y);
    }
    co_return right;
}
//]

asio::awaitable<ca::result<bool>> run()
{
    using namespace asio::experimental::awaitable_operators;
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const weights w = make_weights();

    //[plan_load
    BOOST_OUTCOME_CO_TRY(const auto description, make_classifier(w)); // checked without a device
    std::cout << description.to_text();
    const ca::plan_options how{.instances = 4}; // up to four runs at the same time
    BOOST_OUTCOME_CO_TRY(const auto classify, co_await gpu.async_load(description, how));
    //]

    const auto [one, other] = co_await (ask(classify, w, 0, 20) && ask(classify, w, 20, 20));
    BOOST_OUTCOME_CO_TRYV(one);
    BOOST_OUTCOME_CO_TRYV(other);
    std::cout << one.value() + other.value() << " of 40 answers are right\n";

    const image x = make_image(40);
    scores y{};
    BOOST_OUTCOME_CO_TRYV(co_await classify.async_unload());

    const std::string file = (std::filesystem::temp_directory_path() / "coaccel_classify.plan").string();
    //[plan_file
    BOOST_OUTCOME_CO_TRYV(description.save(file));
    BOOST_OUTCOME_CO_TRY(const auto from_file, ca::plan_description::load(file)); // the weights are mapped, not copied
    BOOST_OUTCOME_CO_TRY(const auto restored, co_await gpu.async_load(from_file));
    BOOST_OUTCOME_CO_TRYV(co_await restored.async_run(ca::from(x), ca::to(y)));
    //]
    std::filesystem::remove(file);
    co_return one.value() + other.value() == 40 && from_file == description&& is_right(w, x, y);
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
