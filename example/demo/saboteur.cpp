#include "saboteur.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace demo {

asio::awaitable<void> sabotage(coaccel::telemetry::registry metrics, tally& counts)
{
    constexpr auto interval = 400ms;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (auto next = tally::clock::now() + interval; !counts.stopping; next += interval) {
        timer.expires_at(next);
        co_await timer.async_wait(asio::use_awaitable);
        const auto now = co_await metrics.async_collect(asio::use_awaitable);
        // A device without a worker process is being rebuilt.
        if (counts.stopping || now.devices.empty() || !now.devices[0].stats ||
            now.devices[0].stats->hardware.process == 0)
            continue;
        if (::kill(now.devices[0].stats->hardware.process, SIGKILL) == 0)
            counts.add_fault();
    }
}

} // namespace demo
