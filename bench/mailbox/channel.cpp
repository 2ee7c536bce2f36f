#include "rates.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <thread>
#include <vector>

namespace coaccel::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using channel = asio::experimental::concurrent_channel<void(error_code, item)>;

asio::awaitable<void> produce(channel& to, std::uint64_t id, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        item m{id, i};
        if (!to.try_send(error_code(), m))
            co_await to.async_send(error_code(), m, asio::use_awaitable);
    }
}

asio::awaitable<void> consume(channel& from, std::size_t count, std::uint64_t& sum)
{
    while (count > 0) {
        std::size_t taken = 0;
        while (from.try_receive([&](error_code, item m) {
            sum += m.value;
            ++taken;
        })) {
        }
        count -= taken;
        if (count == 0)
            break;
        item m = co_await from.async_receive(asio::use_awaitable);
        sum += m.value;
        --count;
    }
}

} // namespace

double channel_rate(int producers, std::size_t messages)
{
    asio::io_context consumer(1);
    channel box(consumer, capacity);
    std::uint64_t sum = 0;
    const std::size_t each = messages / static_cast<std::size_t>(producers);
    asio::co_spawn(consumer, consume(box, each * static_cast<std::size_t>(producers), sum), asio::detached);

    const stopwatch watch;
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p)
        threads.emplace_back([&box, p, each] {
            asio::io_context producer(1);
            asio::co_spawn(producer, produce(box, static_cast<std::uint64_t>(p), each), asio::detached);
            producer.run();
        });
    consumer.run();
    const double rate = watch.rate(each * static_cast<std::size_t>(producers));
    for (auto& t : threads)
        t.join();
    return rate;
}

} // namespace coaccel::bench
