// A fully connected layer as one operation: a product, a bias for each row, and gelu.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <cmath>
#include <cstddef>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t batch = 8;
constexpr std::size_t inputs = 48;
constexpr std::size_t outputs = 32;

// Weights are column-major, as in BLAS: element (row, column) is at row + column * outputs.
struct layer {
    std::vector<float> weights; // outputs x inputs
    std::vector<float> bias;    // outputs
};

//[fused_layer
// y = gelu(weights * x + bias). A column of x and y has the numbers of one member of the batch.
ca::blas::matmul<float> make_product(ca::ref<float> weights, ca::ref<float> bias, ca::ref<float> x, ca::ref<float> y)
{
    return {.a = weights,
            .b = x,
            .d = y,
            .bias = bias,
            .m = outputs,
            .n = batch,
            .k = inputs,
            .activation = ca::blas::activation::gelu};
}

asio::awaitable<ca::result<std::vector<float>>> apply(ca::device gpu, const layer& l, const std::vector<float>& x)
{
    BOOST_OUTCOME_CO_TRY(const auto weights, co_await gpu.async_upload(l.weights));
    BOOST_OUTCOME_CO_TRY(const auto bias, co_await gpu.async_upload(l.bias));
    BOOST_OUTCOME_CO_TRY(const auto in, co_await gpu.async_upload(x));
    BOOST_OUTCOME_CO_TRY(const auto out, co_await gpu.async_alloc<float>(outputs * batch));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(make_product(weights.ref(), bias.ref(), in.ref(), out.ref())));
    co_return co_await gpu.async_download(out);
}
//]

//[fused_layer_tune
// Once, before the products: measures the algorithms for them. The numbers in the operands do not matter.
asio::awaitable<ca::result<void>> tune(ca::device gpu)
{
    BOOST_OUTCOME_CO_TRY(const auto weights, co_await gpu.async_alloc<float>(outputs * inputs));
    BOOST_OUTCOME_CO_TRY(const auto bias, co_await gpu.async_alloc<float>(outputs));
    BOOST_OUTCOME_CO_TRY(const auto x, co_await gpu.async_alloc<float>(inputs * batch));
    BOOST_OUTCOME_CO_TRY(const auto y, co_await gpu.async_alloc<float>(outputs * batch));
    const auto product = make_product(weights.ref(), bias.ref(), x.ref(), y.ref());
    BOOST_OUTCOME_CO_TRY(const ca::tuning found, co_await gpu.async_tune(product));
    if (found.candidates == 0) // on the CPU
        std::cout << "there is one algorithm\n";
    else
        std::cout << "the fastest of " << found.candidates << " algorithms takes " << found.best_us
                  << " us, the first one " << found.first_us << " us\n";
    co_return ca::success();
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

// In plain loops, with the approximation of gelu that cuBLASLt and the CPU compute.
bool is_right(const layer& l, const std::vector<float>& x, const std::vector<float>& y)
{
    const double root = std::sqrt(2 / 3.14159265358979);
    for (std::size_t member = 0; member < batch; ++member)
        for (std::size_t row = 0; row < outputs; ++row) {
            double sum = l.bias[row];
            for (std::size_t k = 0; k < inputs; ++k)
                sum += double(l.weights[row + k * outputs]) * double(x[k + member * inputs]);
            const double wanted = sum / 2 * (1 + std::tanh(root * (sum + 0.044715 * sum * sum * sum)));
            if (!(std::abs(y[row + member * outputs] - wanted) < 1e-5))
                return false;
        }
    return true;
}

asio::awaitable<ca::result<bool>> run()
{
    const ca::device_options options{.kind = ca::device_kind::host};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const layer l{numbers(outputs * inputs, 1, 4), numbers(outputs, 2, 1)};
    const auto x = numbers(inputs * batch, 3, 1);
    BOOST_OUTCOME_CO_TRYV(co_await tune(gpu));
    BOOST_OUTCOME_CO_TRY(const auto y, co_await apply(gpu, l, x));
    const bool right = y.size() == outputs * batch && is_right(l, x, y);
    std::cout << (right ? "all outputs are right\n" : "an output is wrong\n");
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
