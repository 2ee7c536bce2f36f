// The context of a device is lost; the device continues with a new one.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

//[repeat
// The contents of device memory are lost with the context, so the whole job is repeated, uploads included.
asio::awaitable<ca::result<float>> sum(ca::device gpu, const std::vector<float>& numbers)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
    co_return co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()});
}

asio::awaitable<ca::result<float>> sum_with_retry(ca::device gpu, const std::vector<float>& numbers)
{
    for (int attempt = 1;; ++attempt) {
        auto done = co_await sum(gpu, numbers);
        if (done || attempt == 3 || !ca::is_context_lost(done.error()))
            co_return done;
    }
}
//]

asio::awaitable<ca::result<bool>> run(ca::fault_injector& injector)
{
    //[injector
    ca::device_options options;
    options.kind = ca::device_kind::host;
    options.host.injector = &injector; // outlives the device
    //]
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));

    const std::vector<float> numbers{1, 2, 3, 4};
    BOOST_OUTCOME_CO_TRY(auto old, co_await gpu.async_upload(numbers));

    //[watch
    auto generations = gpu.watch_generation();
    std::cout << "generation " << generations.get() << '\n';
    //]

    // The next op corrupts its context, as an access to an illegal address corrupts a CUDA context.
    injector.poison();
    const auto outstanding = co_await gpu.async_exec(ca::blas::asum<float>{.x = old, .n = old.size()});
    std::cout << "outstanding op: " << (outstanding ? "done" : outstanding.error().message()) << '\n';
    std::cout << "the device is " << to_string(gpu.status().state) << '\n';

    // Uses no buffer of the old context: it waits for the new one and runs there.
    BOOST_OUTCOME_CO_TRY(const float total, co_await sum(gpu, numbers));
    std::cout << "queued op: " << total << '\n';

    //[changed
    BOOST_OUTCOME_CO_TRY(const ca::generation generation, co_await generations.async_changed());
    std::cout << "generation " << generation << '\n';
    //]

    const auto stale = co_await gpu.async_download(old);
    std::cout << "op with an old ref: " << (stale ? "done" : stale.error().message()) << '\n';

    injector.poison();
    BOOST_OUTCOME_CO_TRY(const float repeated, co_await sum_with_retry(gpu, numbers));
    std::cout << "repeated after a fault: " << repeated << '\n';

    BOOST_OUTCOME_CO_TRY(const auto stats, co_await gpu.async_stats());
    std::cout << "rebuilt " << stats.restarts << " times\n";

    const bool lost = !outstanding && ca::is_context_lost(outstanding.error());
    const bool refused = !stale && stale.error() == ca::errc::stale_ref;
    const bool right = total == 10 && repeated == 10 && generation == 2 && stats.restarts == 2;
    co_return (lost && refused && right);
}

} // namespace

int main()
{
    ca::fault_injector injector;
    asio::io_context io;
    auto running = asio::co_spawn(io, run(injector), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
