// A perceptron with two layers as a plan: products, biases with activations, and a softmax.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <cmath>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t batch = 8;
constexpr std::size_t inputs = 64;
constexpr std::size_t hidden = 32;
constexpr std::size_t classes = 10;

// Weights are column-major, as in BLAS: element (row, column) is at row + column * rows.
struct model {
    std::vector<float> first;       // hidden x inputs
    std::vector<float> first_bias;  // hidden
    std::vector<float> second;      // classes x hidden
    std::vector<float> second_bias; // classes
};

//[perceptron_build
// y = softmax(second * gelu(first * x + first_bias) + second_bias), for each of `batch` images. A column of a
// column-major matrix of blas is a row of a row-major one of prim: each has the numbers of one image.
ca::result<ca::plan_description> make_perceptron(const model& m)
{
    ca::plan_builder b("perceptron");
    const auto x = b.input<float>(inputs * batch, "x");
    const auto first = b.constant<float>(m.first, "first");
    const auto first_bias = b.constant<float>(m.first_bias, "first_bias");
    const auto second = b.constant<float>(m.second, "second");
    const auto second_bias = b.constant<float>(m.second_bias, "second_bias");
    const auto h = b.scratch<float>(hidden * batch, "h");
    const auto z = b.scratch<float>(classes * batch, "z");
    const auto y = b.output<float>(classes * batch, "y");
    b.add(ca::blas::gemm<float>{.a = first, .b = x, .c = h, .m = hidden, .n = batch, .k = inputs});
    b.add(ca::prim::bias_activation<float>{
        .x = h, .bias = first_bias, .y = h, .rows = batch, .columns = hidden, .what = ca::prim::activation::gelu});
    b.add(ca::blas::gemm<float>{.a = second, .b = h, .c = z, .m = classes, .n = batch, .k = hidden});
    b.add(ca::prim::bias_activation<float>{.x = z, .bias = second_bias, .y = z, .rows = batch, .columns = classes});
    b.add(ca::prim::softmax<float>{.x = z, .y = y, .n = classes, .outer = batch});
    return b.finish();
}
//]

// Numbers between -1 and 1, divided by `by`.
std::vector<float> numbers(std::size_t count, std::size_t seed, float by)
{
    std::vector<float> made(count);
    for (std::size_t i = 0; i < count; ++i)
        made[i] = (static_cast<float>((i + seed) * 7919 % 2001) / 1000 - 1) / by;
    return made;
}

// One layer before its activation, in plain loops.
std::vector<double> layer(const std::vector<float>& weights, const std::vector<float>& bias,
                          const std::vector<double>& x)
{
    std::vector<double> y(bias.begin(), bias.end());
    for (std::size_t column = 0; column < x.size(); ++column)
        for (std::size_t row = 0; row < y.size(); ++row)
            y[row] += weights[row + column * y.size()] * x[column];
    return y;
}

bool is_right(const model& m, const std::vector<float>& x, const std::vector<float>& y)
{
    for (std::size_t image = 0; image < batch; ++image) {
        const auto from = x.begin() + static_cast<std::ptrdiff_t>(image * inputs);
        auto h = layer(m.first, m.first_bias, {from, from + inputs});
        for (double& v : h)
            v = v / 2 * std::erfc(-v / std::sqrt(2.0));
        const auto z = layer(m.second, m.second_bias, h);
        double sum = 0;
        for (const double v : z)
            sum += std::exp(v);
        for (std::size_t i = 0; i < classes; ++i)
            if (!(std::abs(y[image * classes + i] - std::exp(z[i]) / sum) < 1e-5))
                return false;
    }
    return true;
}

asio::awaitable<ca::result<bool>> run()
{
    const ca::device_options options{.kind = ca::device_kind::host};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const model m{numbers(hidden * inputs, 1, 8), numbers(hidden, 2, 1), numbers(classes * hidden, 3, 4),
                  numbers(classes, 4, 1)};
    BOOST_OUTCOME_CO_TRY(const auto description, make_perceptron(m));
    BOOST_OUTCOME_CO_TRY(const auto classify, co_await gpu.async_load(description));
    bool right = true;
    for (std::size_t i = 0; i < 3; ++i) {
        const auto x = numbers(inputs * batch, 100 * i, 1);
        std::vector<float> y(classes * batch);
        BOOST_OUTCOME_CO_TRYV(co_await classify.async_run(ca::from(x), ca::to(y)));
        right = right && is_right(m, x, y);
    }
    std::cout << (right ? "all answers are right\n" : "an answer is wrong\n");
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
