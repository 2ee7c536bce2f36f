// A classifier behind a dynamic batcher: a hundred coroutines send one image each, the device computes a few batches.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <array>
#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t inputs = 256;
constexpr std::size_t classes = 10;
constexpr int requests = 100;

using image = std::array<float, inputs>;
using scores = std::array<float, classes>;

float number(std::size_t i)
{
    return static_cast<float>(i * 7919 % 2001) / 1000 - 1;
}

//[batching_model
// The scores of `rows` images. An image is a column of the matrix x, so the rows of a batch follow one another.
ca::result<serve::batch_plan> classifier(std::uint32_t rows, const std::vector<float>& weights)
{
    ca::plan_builder b("classify" + std::to_string(rows));
    const auto x = b.input<float>(inputs * rows, "x");
    const auto w = b.constant<float>(weights, "w");
    const auto y = b.output<float>(classes * rows, "y");
    b.add(ca::blas::gemm<float>{.a = w, .b = x, .c = y, .m = classes, .n = rows, .k = inputs});
    BOOST_OUTCOME_TRY(auto described, b.finish());
    return serve::batch_plan{rows, std::move(described)};
}

// Plans for one image, for up to 8 and for up to 64. The device has the weights once.
ca::result<serve::batch_model> make_model(const std::vector<float>& weights)
{
    std::vector<serve::batch_plan> plans;
    for (const std::uint32_t rows : {1u, 8u, 64u}) {
        BOOST_OUTCOME_TRY(auto plan, classifier(rows, weights));
        plans.push_back(std::move(plan));
    }
    return serve::batch_model::create(std::move(plans));
}
//]

struct tally {
    void add(const scores& given, const scores& expected)
    {
        ++answered;
        for (std::size_t i = 0; i < classes; ++i)
            if (std::abs(given[i] - expected[i]) > 1e-3f)
                return;
        ++right;
    }

    int answered = 0;
    int right = 0;
};

//[batching_client
// A connection of a server calls this for each request.
asio::awaitable<void> client(serve::dynamic_batcher classify, image x, scores expected, tally* count)
{
    scores y{};
    const auto within_a_second = classify.with(ca::within(1s));
    const auto answered = co_await within_a_second.async_run(ca::from(x), ca::to(y));
    if (!answered)
        std::cerr << answered.error().message() << '\n';
    else
        count->add(y, expected);
}
//]

asio::awaitable<ca::result<serve::dynamic_batcher>> run(tally* count)
{
    const auto executor = co_await asio::this_coro::executor;
    std::vector<float> weights(classes * inputs);
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = number(i) / 16;
    BOOST_OUTCOME_CO_TRY(auto model, make_model(weights));
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor));
    //[batching_create
    serve::batcher_options options;
    options.name = "classify";
    options.max_delay = 2ms; // how long a request waits for others while a batch runs
    const std::vector devices{gpu};
    const std::vector models{model};
    BOOST_OUTCOME_CO_TRY(auto classify,
                         co_await serve::dynamic_batcher::async_create(executor, devices, models, options));
    //]
    for (std::size_t n = 0; n < requests; ++n) {
        image x;
        scores expected{};
        for (std::size_t i = 0; i < inputs; ++i) {
            x[i] = number(n * inputs + i);
            for (std::size_t c = 0; c < classes; ++c)
                expected[c] += weights[c + i * classes] * x[i];
        }
        asio::co_spawn(executor, client(classify, x, expected, count), asio::detached);
    }
    co_return classify;
}

} // namespace

int main()
{
    asio::io_context io;
    tally count;
    serve::dynamic_batcher classify;
    asio::co_spawn(io, run(&count), [&classify](std::exception_ptr e, ca::result<serve::dynamic_batcher> r) {
        if (!e && r)
            classify = r.value();
        else if (!e)
            std::cerr << r.error().message() << '\n';
    });
    io.run();
    const auto batches = classify.stats().batches;
    std::cout << count.right << " of " << requests << " requests right, in " << batches << " batches\n";
    return count.right == requests && batches < requests / 4 ? 0 : 1;
}
