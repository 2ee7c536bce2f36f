#include "device/completion_queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace test_device_completion_queue {

namespace {

using namespace coaccel;
using detail::async_op_base;
using detail::async_op_list;
using detail::completion_queue;

struct completion final : async_op_base {
    void resume() override { call(); }
    void post() override {}
    void destroy() noexcept override { ++destroyed; }

    std::function<void()> call;
    int destroyed = 0;
};

using completions = std::span<const std::unique_ptr<completion>>;

/// An executor's queue that contains only runners.
struct executor {
    auto post() noexcept
    {
        return [this] {
            CHECK(posted == 0);
            ++posted;
        };
    }

    /// Adds them in a place where handlers must not be called.
    void add(completions some)
    {
        async_op_list found;
        fill(found, some);
        queue.add(found, post());
    }

    /// Adds them on a thread of the executor.
    void find(completions some)
    {
        async_op_list found;
        fill(found, some);
        queue.run(queue.add_and_take(found, post()), post());
    }

    /// False: no runner was posted.
    bool run_one()
    {
        if (posted == 0)
            return false;
        --posted;
        queue.run_posted(post());
        return true;
    }

    void run()
    {
        while (run_one()) {
        }
    }

    completion_queue queue;
    int posted = 0;

private:
    static void fill(async_op_list& list, completions some)
    {
        for (const auto& c : some)
            list.push_back(*c);
    }
};

/// Completions that record the order in which they are called.
struct crowd {
    explicit crowd(std::size_t count)
    {
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back(std::make_unique<completion>());
            all.back()->call = [this, i] { order.push_back(i); };
        }
    }

    bool in_order() const
    {
        for (std::size_t i = 0; i < order.size(); ++i)
            if (order[i] != i)
                return false;
        return order.size() == all.size();
    }

    std::vector<std::unique_ptr<completion>> all;
    std::vector<std::size_t> order;
};

TEST_SUITE_BEGIN("device completion queue");

TEST_CASE("the thread that finds a single completion calls it, without a post")
{
    executor ex;
    crowd one(1);
    ex.find(one.all);
    CHECK(one.in_order());
    CHECK(ex.posted == 0);
}

TEST_CASE("completions found where no handler may run post one runner in total")
{
    executor ex;
    crowd two(2);
    ex.add(std::span(two.all).first(1));
    CHECK(ex.posted == 1);
    ex.add(std::span(two.all).last(1));
    CHECK(ex.posted == 1);
    CHECK(two.order.empty());
    ex.run();
    CHECK(two.in_order());
}

TEST_CASE("later completions do not overtake completions that wait for a runner")
{
    // Also more than there is room for without a lock.
    for (const std::size_t waiting : {1, 2, 127, 128, 129, 300}) {
        executor ex;
        crowd some(waiting + 2);
        ex.add(std::span(some.all).first(waiting));
        ex.find(std::span(some.all).subspan(waiting));
        ex.run();
        CHECK(some.in_order());
    }
}

TEST_CASE("a handler that throws leaves the other handlers to the runner")
{
    executor ex;
    crowd three(3);
    three.all[0]->call = [&] {
        three.order.push_back(0);
        throw 1;
    };
    CHECK_THROWS_AS(ex.find(three.all), int);
    CHECK(ex.run_one());
    CHECK(three.in_order());
}

TEST_CASE("a thread returns to the executor after 64 handlers")
{
    executor ex;
    crowd many(200);
    ex.find(many.all);
    CHECK(many.order.size() == 64);
    CHECK(ex.run_one());
    CHECK(many.order.size() == 128);
    ex.run();
    CHECK(many.in_order());
}

TEST_CASE("a handler that runs the executor causes one other handler call at a time")
{
    executor ex;
    crowd four(4);
    four.all[0]->call = [&] {
        four.order.push_back(0);
        CHECK(ex.run_one());
        CHECK(four.order.size() == 2);
        CHECK(ex.run_one());
        CHECK(four.order.size() == 3);
    };
    ex.find(four.all);
    ex.run();
    CHECK(four.in_order());
}

TEST_CASE("take_all returns the completions that were not called")
{
    for (const std::size_t waiting : {1, 2, 3, 128, 129, 300}) {
        executor ex;
        crowd some(waiting);
        ex.add(std::span(some.all).first(1));
        ex.add(std::span(some.all).subspan(1));
        {
            async_op_list left;
            ex.queue.take_all(left);
        }
        for (const auto& c : some.all)
            CHECK(c->destroyed == 1);
    }
}

// Every combination of handlers that run the executor: bit i of `nested` stands for the handler of completion i.
TEST_CASE("while a handler runs, a runner is posted for the completions behind it")
{
    constexpr std::size_t count = 8;
    for (const bool on_executor : {false, true})
        for (unsigned nested = 0; nested < 1u << count; ++nested)
            for (std::size_t first = 1; first <= count; ++first) {
                executor ex;
                crowd some(count);
                const completions all(some.all);
                std::size_t added = first;
                for (std::size_t i = 0; i < count; ++i)
                    some.all[i]->call = [&, i] {
                        some.order.push_back(i);
                        const bool within_reach = some.order.size() == added || ex.posted == 1;
                        REQUIRE(within_reach);
                        // The first handler starts operations that complete at once.
                        if (i == 0) {
                            added = count;
                            ex.add(all.subspan(first));
                        }
                        if ((nested >> i & 1) != 0)
                            ex.run_one();
                    };
                if (on_executor)
                    ex.find(all.first(first));
                else
                    ex.add(all.first(first));
                ex.run();
                REQUIRE(some.in_order());
            }
}

TEST_CASE("several threads call each handler once, and each thread calls them in order")
{
    constexpr int threads = 4;
    constexpr int rounds = 3000;
    // Few and many completions alternate, so that each way of adding precedes and follows the other.
    const auto size_of = [](int round) { return round % 50 == 0 ? 200 : round % 3 == 0 ? 5 : 1; };
    int total = 0;
    for (int r = 0; r < rounds; ++r)
        total += size_of(r);
    completion_queue queue;
    std::atomic<int> posted{0};
    std::atomic<int> called{0};
    std::atomic<bool> in_order{true};
    const auto post = [&] { posted.fetch_add(1); };
    std::deque<completion> all(static_cast<std::size_t>(total));
    static thread_local int last_here = -1;
    last_here = -1;
    for (int i = 0; i < total; ++i)
        all[static_cast<std::size_t>(i)].call = [&, i] {
            if (std::exchange(last_here, i) > i)
                in_order = false;
            called.fetch_add(1);
        };
    std::vector<std::jthread> runners;
    for (int t = 0; t < threads; ++t)
        runners.emplace_back([&] {
            while (called.load() < total) {
                int n = posted.load();
                if (n > 0 && posted.compare_exchange_strong(n, n - 1))
                    queue.run_posted(post);
                else
                    std::this_thread::yield();
            }
        });
    auto next = all.begin();
    for (int r = 0; r < rounds; ++r) {
        async_op_list found;
        for (int i = 0; i < size_of(r); ++i)
            found.push_back(*next++);
        queue.add(found, post);
    }
    runners.clear();
    CHECK(called.load() == total);
    CHECK(in_order.load());
    CHECK(posted.load() <= 1);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_completion_queue
