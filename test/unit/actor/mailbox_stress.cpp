#include "support.hpp"

#include <coaccel/actor/mailbox.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace test_actor_mailbox_stress {

using namespace coaccel;

namespace {

struct letter {
    int producer = 0;
    int number = 0;
    std::shared_ptr<int> weight; // the sanitizers report a lost or duplicated move
};

struct tally {
    std::atomic<int> accepted{0};
    std::atomic<int> refused{0};
    int delivered = 0;
    bool ordered = true;
};

asio::awaitable<void> produce(mailbox_ref<letter> to, int id, int count, tally& t)
{
    for (int i = 0; i < count; ++i) {
        letter m{id, i, std::make_shared<int>(i)};
        error_code ec = to.try_send(std::move(m));
        if (ec == errc::queue_full) {
            auto sent = co_await to.async_send(std::move(m));
            ec = sent ? error_code() : sent.error();
        }
        ++(ec ? t.refused : t.accepted);
    }
}

asio::awaitable<void> consume(mailbox<letter>& from, int producers, int close_after, tally& t)
{
    std::vector<int> next(static_cast<std::size_t>(producers), 0);
    std::vector<letter> batch;
    for (;;) {
        batch.clear();
        auto n = co_await from.async_receive_batch(batch, 7);
        if (!n)
            co_return;
        for (const letter& m : batch) {
            int& expected = next[static_cast<std::size_t>(m.producer)];
            t.ordered = t.ordered && m.number == expected && *m.weight == m.number;
            ++expected;
            if (++t.delivered == close_after)
                from.close();
        }
    }
}

void exchange(int producers, int threads, std::size_t capacity, int each, int close_after)
{
    CAPTURE(producers);
    CAPTURE(capacity);
    asio::io_context ctx;
    auto box = mailbox<letter>::create(ctx.get_executor(), capacity).value();
    tally t;
    asio::co_spawn(asio::make_strand(ctx), consume(box, producers, close_after, t), asio::detached);
    for (int p = 0; p < producers; ++p)
        asio::co_spawn(asio::make_strand(ctx), produce(box.ref(), p, each, t), asio::detached);
    test::run_on_threads(ctx, threads);
    CHECK(t.ordered);
    CHECK(t.accepted + t.refused == producers * each);
    CHECK(t.delivered == t.accepted);
}

} // namespace

TEST_SUITE_BEGIN("mailbox under load");

TEST_CASE("every message arrives once and in the order of its producer")
{
    for (std::size_t capacity : {1, 3, 64}) {
        exchange(1, 2, capacity, 5000, 5000);
        exchange(4, 4, capacity, 2000, 8000);
    }
}

TEST_CASE("a close in the middle delivers exactly the accepted messages")
{
    for (int close_after : {1, 10, 500, 3000})
        for (std::size_t capacity : {1, 5, 128}) {
            exchange(1, 2, capacity, 4000, close_after);
            exchange(4, 4, capacity, 1000, close_after);
        }
}

TEST_CASE("a close from another thread races with producers on their own threads")
{
    for (int round = 0; round < 40; ++round) {
        asio::io_context ctx;
        auto box = mailbox<letter>::create(ctx.get_executor(), 16).value();
        tally t;
        std::atomic<bool> closed{false};
        std::vector<std::thread> threads;
        for (int p = 0; p < 4; ++p)
            threads.emplace_back([&, p] {
                for (int i = 0;; ++i) {
                    letter m{p, i, std::make_shared<int>(i)};
                    const error_code ec = box.try_send(std::move(m));
                    if (ec == errc::closed)
                        return;
                    if (!ec)
                        ++t.accepted;
                }
            });
        threads.emplace_back([&] {
            while (t.accepted < 200)
                std::this_thread::yield();
            box.close();
            closed = true;
        });
        for (;;) {
            auto m = box.try_receive();
            if (m)
                ++t.delivered;
            else if (m.error() == errc::closed)
                break;
        }
        for (auto& th : threads)
            th.join();
        CHECK(closed);
        CHECK(t.delivered == t.accepted);
    }
}

TEST_CASE("each cancelled send is either refused or delivered")
{
    asio::io_context ctx;
    auto box = mailbox<letter>::create(ctx.get_executor(), 2).value();
    constexpr int sends = 2000;
    std::atomic<int> accepted{0};
    std::atomic<int> aborted{0};
    std::atomic<int> open{sends};
    int delivered = 0;

    for (int i = 0; i < sends; ++i) {
        // Slot and handler share a strand, as Asio requires; cancellation and delivery still race.
        auto strand = asio::make_strand(ctx);
        auto signal = std::make_shared<asio::cancellation_signal>();
        asio::post(strand, [&, strand, signal, i] {
            box.async_send(
                letter{0, i, std::make_shared<int>(i)},
                asio::bind_cancellation_slot(signal->slot(), asio::bind_executor(strand, [&, signal](error_code ec) {
                                                 ++(ec ? aborted : accepted);
                                                 if (--open == 0)
                                                     box.close();
                                             })));
        });
        if (i % 2)
            asio::post(strand, [signal] { signal->emit(asio::cancellation_type::total); });
    }
    auto drain = [](mailbox<letter>& from, int& count) -> asio::awaitable<void> {
        for (;;) {
            auto m = co_await from.async_receive();
            if (!m)
                co_return;
            ++count;
        }
    };
    asio::co_spawn(asio::make_strand(ctx), drain(box, delivered), asio::detached);
    test::run_on_threads(ctx, 4);
    CHECK(accepted + aborted == sends);
    CHECK(delivered == accepted);
    CHECK(accepted >= sends / 2);
}

TEST_CASE("cancelled receives take no message")
{
    asio::io_context ctx;
    auto box = mailbox<letter>::create(ctx.get_executor(), 8).value();
    auto strand = asio::make_strand(ctx);
    asio::cancellation_signal signal;
    constexpr int count = 3000;
    int delivered = 0;
    int aborted = 0;

    struct receiver {
        mailbox<letter>& box;
        asio::strand<asio::io_context::executor_type> strand;
        asio::cancellation_signal& signal;
        int& delivered;
        int& aborted;

        void go()
        {
            box.async_receive(asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(strand, *this)));
            asio::post(strand, [&s = signal] { s.emit(asio::cancellation_type::partial); });
        }

        void operator()(error_code ec, letter)
        {
            if (ec == errc::closed)
                return;
            ++(ec ? aborted : delivered);
            go();
        }
    };
    asio::post(strand, [&] { receiver{box, strand, signal, delivered, aborted}.go(); });
    tally t;
    auto feed = [](mailbox<letter>& to, tally& sent, int n) -> asio::awaitable<void> {
        co_await produce(to.ref(), 0, n, sent);
        to.close();
    };
    asio::co_spawn(asio::make_strand(ctx), feed(box, t, count), asio::detached);
    test::run_on_threads(ctx, 3);
    CHECK(t.accepted == count);
    CHECK(delivered == count);
}

TEST_CASE("destroying a mailbox while threads send leaves no waiting operation")
{
    for (int round = 0; round < 200; ++round) {
        asio::io_context ctx;
        auto box = std::make_unique<mailbox<letter>>(mailbox<letter>::create(ctx.get_executor(), 2).value());
        tally t;
        for (int p = 0; p < 3; ++p)
            asio::co_spawn(asio::make_strand(ctx), produce(box->ref(), p, 20, t), asio::detached);
        asio::post(ctx, [&] { box.reset(); });
        test::run_on_threads(ctx, 3);
        CHECK(t.accepted + t.refused == 60);
    }
}

TEST_SUITE_END();

} // namespace test_actor_mailbox_stress
