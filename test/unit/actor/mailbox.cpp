#include "mailbox_support.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace test_actor_mailbox {

using namespace coaccel;
using test::make;
using test::outcome_probe;
using test::put;

TEST_SUITE_BEGIN("mailbox");

TEST_CASE("a capacity of zero or beyond the limit is an invalid option")
{
    asio::io_context ctx;
    const auto refused = mailbox<int>::create(ctx.get_executor(), 0).error();
    CHECK(refused == errc::invalid_option);
    CHECK(refused.message() == "mailbox: capacity is 0; it must be from 1 to 1073741824");
    CHECK(mailbox<int>::create(ctx.get_executor(), mailbox<int>::max_capacity + 1).error() == errc::invalid_option);
}

TEST_CASE("the capacity is exact even if it is no power of two")
{
    asio::io_context ctx;
    for (std::size_t capacity : {1, 2, 3, 5, 8, 13}) {
        auto box = make<int>(ctx, capacity);
        for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < capacity; ++i)
                CHECK_FALSE(put(box, static_cast<int>(i)));
            CHECK(put(box, 99) == errc::queue_full);
            CHECK(box.size() == capacity);
            for (std::size_t i = 0; i < capacity; ++i)
                CHECK(box.try_receive().value() == static_cast<int>(i));
            CHECK(box.try_receive().error() == asio::error::would_block);
        }
    }
}

TEST_CASE("a refused message is left untouched")
{
    asio::io_context ctx;
    auto box = make<std::unique_ptr<int>>(ctx, 1);
    auto first = std::make_unique<int>(1);
    auto second = std::make_unique<int>(2);
    CHECK_FALSE(box.try_send(std::move(first)));
    CHECK(first == nullptr);
    CHECK(box.try_send(std::move(second)) == errc::queue_full);
    CHECK(second != nullptr);
    box.close();
    CHECK(box.try_send(std::move(second)) == errc::closed);
    CHECK(second != nullptr);
}

TEST_CASE("waiting senders are served in order and are not overtaken")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 1);
    CHECK_FALSE(put(box, 0));
    outcome_probe one;
    outcome_probe two;
    box.async_send(1, one.handler());
    box.async_send(2, two.handler());
    CHECK(put(box, 3) == errc::queue_full);
    CHECK(box.try_receive().value() == 0);
    CHECK(put(box, 3) == errc::queue_full);
    CHECK(box.try_receive().value() == 1);
    CHECK(box.try_receive().value() == 2);
    CHECK_FALSE(put(box, 3));
    ctx.run();
    CHECK(one.calls == 1);
    CHECK(two.calls == 1);
}

TEST_CASE("a second receive is refused while one is pending")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 2);
    outcome_probe first;
    outcome_probe second;
    box.async_receive(first.handler());
    box.async_receive(second.handler());
    CHECK(box.try_receive().error() == errc::already_waiting);
    ctx.poll();
    CHECK(first.calls == 0);
    CHECK(*second.ec == errc::already_waiting);
    CHECK_FALSE(put(box, 1));
    ctx.restart();
    ctx.run();
    CHECK_FALSE(*first.ec);
}

TEST_CASE("a batch takes at least one and at most max messages and appends them")
{
    asio::io_context ctx;
    auto box = make<int>(ctx, 8);
    for (int i = 0; i < 5; ++i)
        CHECK_FALSE(put(box, i));
    std::vector<int> out{-1};
    std::size_t count = 0;
    box.async_receive_batch(out, 3, [&](error_code, std::size_t n) { count = n; });
    ctx.run();
    CHECK(count == 3);
    CHECK(out == std::vector<int>{-1, 0, 1, 2});
    box.async_receive_batch(out, 0, [&](error_code, std::size_t n) { count = n; });
    ctx.restart();
    ctx.run();
    CHECK(count == 1);
    CHECK(out.back() == 3);
}

TEST_CASE("messages need not be default-constructible for batches")
{
    struct sealed {
        explicit sealed(int v) : value(v) {}
        int value;
    };
    asio::io_context ctx;
    auto box = make<sealed>(ctx, 2);
    CHECK_FALSE(box.try_send(sealed(5)));
    CHECK(box.try_receive().value().value == 5);
    CHECK_FALSE(box.try_send(sealed(6)));
    std::vector<sealed> out;
    box.async_receive_batch(out, 4, [](error_code, std::size_t) {});
    ctx.run();
    CHECK(out.at(0).value == 6);
}

TEST_SUITE_END();

} // namespace test_actor_mailbox
