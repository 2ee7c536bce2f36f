#include "rates.hpp"

#include <coaccel/actor/mailbox.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <thread>
#include <vector>

namespace coaccel::bench {
namespace {

asio::awaitable<void> produce(mailbox_ref<item> to, std::uint64_t id, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        item m{id, i};
        if (to.try_send(std::move(m))) {
            auto sent = co_await to.async_send(m);
            if (!sent)
                co_return;
        }
    }
}

asio::awaitable<void> consume(mailbox<item>& from, std::size_t count, std::uint64_t& sum)
{
    std::vector<item> batch;
    while (count > 0) {
        batch.clear();
        auto received = co_await from.async_receive_batch(batch, capacity);
        if (!received)
            co_return;
        for (const item& m : batch)
            sum += m.value;
        count -= batch.size();
    }
}

} // namespace

double mailbox_rate(int producers, std::size_t messages)
{
    asio::io_context consumer(1);
    auto box = mailbox<item>::create(consumer.get_executor(), capacity).value();
    std::uint64_t sum = 0;
    const std::size_t each = messages / static_cast<std::size_t>(producers);
    asio::co_spawn(consumer, consume(box, each * static_cast<std::size_t>(producers), sum), asio::detached);

    const stopwatch watch;
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p)
        threads.emplace_back([&box, p, each] {
            asio::io_context producer(1);
            asio::co_spawn(producer, produce(box.ref(), static_cast<std::uint64_t>(p), each), asio::detached);
            producer.run();
        });
    consumer.run();
    const double rate = watch.rate(each * static_cast<std::size_t>(producers));
    for (auto& t : threads)
        t.join();
    return rate;
}

} // namespace coaccel::bench
