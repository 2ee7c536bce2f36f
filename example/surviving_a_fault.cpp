// The worker process of a device is killed several times. The clients of a plan get no error.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <csignal>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t n = 64;

//[survive_plan
// y = w * x. All operations are pure and there is no state, so the plan is repeatable.
ca::result<ca::plan_description> make_plan()
{
    ca::plan_builder b("scores");
    const auto x = b.input<float>(n, "x");
    const auto w = b.constant<float>(std::vector<float>(n * n, 0.5f), "w");
    const auto y = b.output<float>(n, "y");
    b.add(ca::blas::gemv<float>{.a = w, .x = x, .y = y, .m = n, .n = n});
    return b.finish();
}
//]

//[survive_client
// No retry loop, no check for a lost context: a run that was lost with its context is repeated by the device.
asio::awaitable<ca::result<int>> client(ca::plan scores, int requests)
{
    int right = 0;
    for (int i = 0; i < requests; ++i) {
        const std::vector<float> x(n, static_cast<float>(i % 10));
        std::vector<float> y(n);
        BOOST_OUTCOME_CO_TRYV(co_await scores.async_run(ca::from(x), ca::to(y)));
        right += y == std::vector<float>(n, 0.5f * static_cast<float>(i % 10) * n);
    }
    co_return right;
}
//]

// Ends the worker process several times, as a GPU fault does.
asio::awaitable<ca::result<int>> saboteur(ca::device gpu, int faults)
{
    auto generations = gpu.watch_generation();
    for (int i = 0; i < faults; ++i) {
        BOOST_OUTCOME_CO_TRY(const auto stats, co_await gpu.async_stats());
        if (stats.hardware.process > 0) // there is none while the device is being rebuilt
            ::kill(stats.hardware.process, SIGKILL);
        BOOST_OUTCOME_CO_TRYV(co_await generations.async_changed());
    }
    co_return faults;
}

asio::awaitable<ca::result<bool>> run()
{
    using namespace asio::experimental::awaitable_operators;
    ca::device_options options;
    options.kind = ca::device_kind::host;
    options.isolation = ca::isolation::worker;
    options.standby = 1; // has the plan loaded when it takes over
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(const auto description, make_plan());
    BOOST_OUTCOME_CO_TRY(const auto scores, co_await gpu.async_load(description));

    const auto [one, other, faults] = co_await (client(scores, 3000) && client(scores, 3000) && saboteur(gpu, 3));
    BOOST_OUTCOME_CO_TRYV(one);
    BOOST_OUTCOME_CO_TRYV(other);
    BOOST_OUTCOME_CO_TRYV(faults);
    const int right = one.value() + other.value();
    BOOST_OUTCOME_CO_TRY(const auto stats, co_await gpu.async_stats());
    std::cout << "requests: 6000, right answers: " << right << ", faults: " << faults.value()
              << ", requests failed: " << stats.failed << '\n';
    co_return right == 6000 && stats.failed == 0 && stats.restarts >= 3;
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
