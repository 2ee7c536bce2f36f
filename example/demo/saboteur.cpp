#include "saboteur.hpp"

#include <coaccel/ops/jit.hpp>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>

namespace ca = coaccel;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace demo {
namespace {

constexpr auto interval = 400ms;
constexpr const char* source = R"(
extern "C" __global__ void stray()
{
    *reinterpret_cast<volatile int*>(16) = 1;
}
)";

} // namespace

asio::awaitable<void> sabotage(ca::device gpu, tally& counts)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    ca::jit::kernel stray;
    for (auto next = tally::clock::now() + interval; !counts.stopping; next += interval) {
        timer.expires_at(next);
        co_await timer.async_wait(asio::use_awaitable);
        auto stats = co_await gpu.async_stats();
        // A device without a worker process is being rebuilt.
        if (counts.stopping || !stats || stats.value().hardware.process == 0)
            continue;
        if (stats.value().backend != "cuda") {
            if (::kill(stats.value().hardware.process, SIGKILL) == 0)
                ++counts.faults;
            continue;
        }
        if (!stray) {
            const ca::jit::compile_options how("stray");
            auto compiled = co_await gpu.async_compile(source, how);
            if (!compiled)
                continue;
            stray = compiled.value();
        }
        const auto launch = ca::jit::launch(stray, {});
        if (!co_await gpu.async_exec(launch))
            ++counts.faults;
    }
}

} // namespace demo
