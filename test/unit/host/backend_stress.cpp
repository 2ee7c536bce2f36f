#include "support.hpp"
#include "support/dense.hpp"
#include "support/start_op.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

namespace test_host_backend_stress {

namespace {

using namespace coaccel;
using host_backend = coaccel::host::backend;
using test::host_with;
using test::task;

/// Ops on several streams with random waits between them. Shared data is not atomic: only the requested waits order the
/// accesses, so ThreadSanitizer reports a missing one.
struct graph {
    struct node {
        void run()
        {
            value = expected();
            ran = true;
        }

        std::uint64_t expected() const
        {
            std::uint64_t sum = 1;
            for (const node* n : before)
                sum += n->value;
            return sum;
        }

        task work{[this] { run(); }};
        std::vector<const node*> before;
        std::uint64_t value = 0;
        std::atomic<bool> ran{false};
        bool accepted = false;
        host_backend::event end;
    };

    graph(test::engine& random, host_backend& b, std::size_t stream_count, std::size_t op_count)
    {
        for (std::size_t i = 0; i < stream_count; ++i)
            streams.push_back(b.make_stream(static_cast<priority>(random() % priority_count)).value());
        std::vector<node*> last(stream_count, nullptr);
        for (std::size_t i = 0; i < op_count; ++i) {
            auto& n = nodes.emplace_back();
            const auto s = random() % stream_count;
            if (last[s])
                n.before.push_back(last[s]);
            last[s] = &n;
            for (std::size_t w = i == 0 ? 0 : random() % 3; w > 0; --w) {
                auto& other = nodes[random() % i];
                n.before.push_back(&other);
                (void)b.wait(streams[s], other.end);
            }
            n.accepted = !test::start(b, streams[s], n.work.op());
            (void)b.record(n.end, streams[s]);
        }
    }

    std::deque<node> nodes;
    std::vector<host_backend::stream> streams;
};

} // namespace

TEST_SUITE_BEGIN("host backend under load");

TEST_CASE("any graph of streams and waits runs in order")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    for (int round = 0; round < 30; ++round) {
        const auto mode = round % 5 == 0 ? host_mode::inline_ : host_mode::pool;
        host_backend b(host_with(mode, 1 + round % 4));
        graph g(random, b, 1 + random() % 6, 300);
        test::told told;
        CHECK(b.notify(g.nodes.back().end, told.call()) == error_code());
        for (auto& n : g.nodes)
            CHECK(b.synchronize(n.end) == error_code());
        told.wait_for(1);
        CHECK(std::ranges::all_of(g.nodes, [](const auto& n) { return n.value == n.expected(); }));
        CHECK(told.count() == 1);
        CHECK(b.status() == error_code());
    }
}

TEST_CASE("a fault anywhere in a graph stops the ops behind it, and every waiter is released")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    for (int round = 0; round < 30; ++round) {
        auto options = host_with(host_mode::pool, 1 + round % 3);
        const bool hang = round % 2 != 0;
        (hang ? options.faults.hang_at : options.faults.poison_at) = 1 + random() % 200;
        auto b = std::make_unique<host_backend>(options);
        auto g = std::make_unique<graph>(random, *b, 1 + random() % 5, 200);
        std::deque<test::told> told;
        for (auto& n : g->nodes)
            CHECK(b->notify(n.end, told.emplace_back().call()) == error_code());
        std::vector<std::thread> waiters;
        for (int i = 0; i < 2; ++i)
            waiters.emplace_back([&, i] {
                auto e = g->nodes[g->nodes.size() - 1 - static_cast<std::size_t>(i)].end;
                (void)b->synchronize(e);
            });
        if (hang)
            b->abort();
        for (auto& w : waiters)
            w.join();
        b->abort();
        test::wait_for_death(*b);
        // No notification is sent twice, and none for an op that did not run.
        for (std::size_t i = 0; i < g->nodes.size(); ++i) {
            const int count = told[i].count();
            CHECK(count <= 1);
            if (count == 1 && g->nodes[i].accepted)
                CHECK(g->nodes[i].ran);
            if (g->nodes[i].ran)
                for (const auto* before : g->nodes[i].before)
                    CHECK(before->ran);
        }
        b.reset();
    }
}

TEST_CASE("threads that synchronise, query and read the status do not disturb the ops")
{
    host_backend b(host_with(host_mode::pool, 2));
    auto s = b.make_stream(priority::normal).value();
    std::deque<task> tasks;
    std::deque<host_backend::event> events;
    int sum = 0;
    for (int i = 0; i < 1000; ++i) {
        tasks.emplace_back([&sum] { ++sum; });
        CHECK(test::start(b, s, tasks.back().op()) == error_code());
        events.emplace_back();
        CHECK(b.record(events.back(), s) == error_code());
    }
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = static_cast<std::size_t>(t); i < events.size(); i += 7) {
                auto e = events[i];
                failures += b.synchronize(e) != error_code();
                failures += b.query(e).value() != progress::passed;
                failures += b.status() != error_code();
                (void)b.memory();
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(failures == 0);
    CHECK(b.synchronize(events.back()) == error_code());
    CHECK(sum == 1000);
}

TEST_SUITE_END();

} // namespace test_host_backend_stress
