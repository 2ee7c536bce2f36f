#include "host/stream.hpp"

#include "support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace test_host_stream {

namespace {

using namespace coaccel;
using host::stream_item;
using host::stream_state;

stream_item item(std::uint64_t mark)
{
    stream_item i;
    i.position = mark;
    return i;
}

} // namespace

TEST_SUITE_BEGIN("stream_state");

TEST_CASE("items leave the stream in order")
{
    stream_state s(priority::normal, nullptr);
    CHECK(s.priority() == priority::normal);
    CHECK(s.pool() == nullptr);
    CHECK(s.pushed() == 0);
    CHECK(s.passed() == 0);
    CHECK(s.push(item(1)));
    for (std::uint64_t i = 2; i <= 5; ++i)
        CHECK_FALSE(s.push(item(i)));
    CHECK(s.pushed() == 5);
    for (std::uint64_t i = 1; i <= 5; ++i) {
        const auto* next = s.next();
        REQUIRE(next != nullptr);
        CHECK(next->position == i);
        s.pass();
        CHECK(s.passed() == i);
    }
    CHECK(s.next() == nullptr);
}

TEST_CASE("an item that has not passed is returned again")
{
    stream_state s(priority::low, nullptr);
    s.push(item(1));
    s.push(item(2));
    CHECK(s.next()->position == 1);
    CHECK(s.next()->position == 1);
    s.pass();
    CHECK(s.next()->position == 2);
}

TEST_CASE("a runner is requested only when there is none")
{
    stream_state s(priority::normal, nullptr);
    CHECK(s.push(item(1)));
    CHECK(s.next() != nullptr);
    CHECK_FALSE(s.push(item(2)));
    s.pass();
    CHECK(s.next() != nullptr);
    s.pass();
    // The runner still owns the stream: `next` has not returned nullptr yet.
    CHECK_FALSE(s.push(item(3)));
    CHECK(s.next() != nullptr);
    s.pass();
    CHECK(s.next() == nullptr);
    CHECK(s.push(item(4)));
}

TEST_CASE("a watcher is called once, when its position passes")
{
    stream_state s(priority::normal, nullptr);
    test::told at_zero, at_one, at_two, also_two, at_three;
    s.watch(0, at_zero.call());
    CHECK(at_zero.count() == 1);
    for (std::uint64_t i = 1; i <= 3; ++i)
        s.push(item(i));
    s.watch(2, at_two.call());
    s.watch(1, at_one.call());
    s.watch(3, at_three.call());
    s.watch(2, also_two.call());
    s.next();
    s.pass();
    CHECK(at_one.count() == 1);
    CHECK(at_two.count() == 0);
    s.next();
    s.pass();
    CHECK(at_two.count() == 1);
    CHECK(also_two.count() == 1);
    CHECK(at_three.count() == 0);
    s.next();
    s.pass();
    CHECK(at_three.count() == 1);
    CHECK(at_zero.count() == 1);
    CHECK(at_one.count() == 1);
    CHECK(at_two.count() == 1);
    test::told late;
    s.watch(2, late.call());
    CHECK(late.count() == 1);
}

TEST_CASE("a removed watcher is not called")
{
    stream_state s(priority::normal, nullptr);
    test::told gone, stays;
    s.push(item(1));
    s.watch(1, gone.call());
    s.watch(1, stays.call());
    s.unwatch(&gone);
    s.unwatch(&s);
    s.next();
    s.pass();
    CHECK(gone.count() == 0);
    CHECK(stays.count() == 1);
}

TEST_CASE("with concurrent runners and watchers, every watcher is called once and no item is lost")
{
    constexpr std::uint64_t items = 4000;
    stream_state s(priority::normal, nullptr);
    std::vector<std::unique_ptr<test::told>> all;
    for (std::uint64_t i = 0; i < items; ++i)
        all.push_back(std::make_unique<test::told>());

    // As in a thread pool, runners pass the stream on under a lock.
    std::mutex mutex;
    std::condition_variable changed;
    int runs = 0;
    bool finished = false;
    std::uint64_t expected = 0;
    bool in_order = true;
    auto run = [&] {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return runs > 0 || finished; });
            if (runs == 0)
                return;
            --runs;
            lock.unlock();
            while (const auto* next = s.next()) {
                in_order &= next->position == expected++;
                s.pass();
            }
            lock.lock();
        }
    };
    std::thread first(run), second(run);
    std::thread watching([&] {
        for (std::uint64_t i = 0; i < items; i += 2)
            s.watch(i + 1, all[i]->call());
    });
    for (std::uint64_t i = 0; i < items; ++i) {
        if (i % 2 != 0)
            s.watch(i + 1, all[i]->call());
        if (s.push(item(i))) {
            const std::scoped_lock lock(mutex);
            ++runs;
            changed.notify_one();
        }
    }
    test::told last;
    s.watch(items, last.call());
    last.wait_for(1);
    watching.join();
    {
        const std::scoped_lock lock(mutex);
        finished = true;
        changed.notify_all();
    }
    first.join();
    second.join();
    CHECK(in_order);
    CHECK(expected == items);
    CHECK(s.passed() == items);
    CHECK(std::ranges::all_of(all, [](const auto& t) { return t->count() == 1; }));
}

TEST_SUITE_END();

} // namespace test_host_stream
