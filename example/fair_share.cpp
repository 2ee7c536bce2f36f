// Three tenants share the time of one device by their weights, however many requests each of them sends.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/fair_share.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;
using namespace std::chrono_literals;

namespace {

ca::result<serve::fair_share> make_share(asio::any_io_executor executor)
{
    //[fair_share_create
    serve::fair_share_options options;
    options.max_running = 2; // as many requests as keep the device busy
    options.tenants["gold"].weight = 6;
    options.tenants["silver"].weight = 3;
    options.tenants["batch"] = {.weight = 1, .minimum_share = 0.2, .max_queued = 10'000};
    options.others.max_running = 1; // each tenant that has no options of its own
    auto made = serve::fair_share::create(executor, options);
    //]
    return made;
}

// Represents a call that returns the device time that it has used.
asio::awaitable<std::chrono::nanoseconds> infer(std::chrono::nanoseconds cost)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, 10us);
    co_await timer.async_wait(asio::use_awaitable);
    co_return cost;
}

//[fair_share_request
asio::awaitable<ca::result<void>> answer(serve::fair_share share, std::string tenant)
{
    BOOST_OUTCOME_CO_TRY(auto turn, co_await share.async_enter(std::move(tenant), ca::within(10s)));
    const auto device_time = co_await infer(1ms);
    turn.finish(device_time); // without it, the time until the permit is destroyed is charged
    co_return ca::success();
}
//]

asio::awaitable<ca::result<void>> work()
{
    const auto device_time = co_await infer(1ms);
    co_return device_time > 0ns ? ca::result<void>(ca::success()) : ca::result<void>(ca::errc::backend_error);
}

asio::awaitable<void> client(serve::fair_share share, std::string tenant)
{
    for (;;) {
        const auto answered = co_await answer(share, tenant);
        if (!answered)
            co_return; // the share was shut down
    }
}

asio::awaitable<ca::result<void>> run()
{
    const auto executor = co_await asio::this_coro::executor;
    BOOST_OUTCOME_CO_TRY(const auto share, make_share(executor));
    for (int i = 0; i < 20; ++i)
        for (const char* tenant : {"gold", "silver", "batch"})
            asio::co_spawn(executor, client(share, tenant), asio::detached);
    while (share.stats().all.started < 1000)
        co_await infer(0ns);
    //[fair_share_run
    // The same for one coroutine or one operation: the turn ends with it.
    BOOST_OUTCOME_CO_TRYV(co_await share.run("guest", ca::within(10s), work()));
    //]
    for (const auto& tenant : share.stats().tenants)
        std::cout << tenant.name << ": " << tenant.counts.started << " turns\n";
    BOOST_OUTCOME_CO_TRYV(co_await share.async_shutdown(ca::shutdown::abandon));
    const auto stats = share.stats();
    // By name: batch, gold, guest, silver. The minimum share of batch leaves 0.8 of the time: two thirds of it for
    // gold.
    const double gold = static_cast<double>(stats.tenants[1].counts.device_time.count());
    const double share_of_gold = gold / static_cast<double>(stats.all.device_time.count());
    co_return share_of_gold > 0.5 && share_of_gold < 0.57 ? ca::result<void>(ca::success())
                                                          : ca::result<void>(ca::errc::backend_error);
}

} // namespace

int main()
{
    asio::io_context io;
    int status = 1;
    asio::co_spawn(io, run(), [&status](std::exception_ptr e, ca::result<void> r) {
        status = !e && r ? 0 : 1;
        if (!e && !r)
            std::cerr << r.error().message() << '\n';
    });
    io.run();
    return status;
}
