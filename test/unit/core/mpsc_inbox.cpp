#include <coaccel/core/detail/mpsc_inbox.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace test_core_mpsc_inbox {

namespace {

using coaccel::detail::inbox_node;
using coaccel::detail::mpsc_inbox;

struct numbered : inbox_node {
    explicit numbered(int p = 0, int n = 0) noexcept : inbox_node(kind::wake), producer(p), number(n) {}

    int producer;
    int number;
};

std::vector<int> numbers(inbox_node* first)
{
    std::vector<int> all;
    for (; first; first = first->next)
        all.push_back(static_cast<numbered*>(first)->number);
    return all;
}

} // namespace

TEST_SUITE_BEGIN("mpsc_inbox");

TEST_CASE("the first node requests a consumer, and the next nodes do not")
{
    mpsc_inbox box;
    numbered a(0, 1), b(0, 2), c(0, 3);
    CHECK_FALSE(box.empty());
    CHECK(box.push(a));
    CHECK_FALSE(box.push(b));
    CHECK_FALSE(box.push(c));
    CHECK(numbers(box.take()) == std::vector<int>{1, 2, 3});
    CHECK(box.empty());
    CHECK(box.take() == nullptr);
}

TEST_CASE("a consumer that has taken every node stays scheduled until it rests")
{
    mpsc_inbox box;
    numbered a(0, 1), b(0, 2), c(0, 3);
    CHECK(box.push(a));
    CHECK(numbers(box.take()) == std::vector<int>{1});
    CHECK_FALSE(box.push(b));
    CHECK_FALSE(box.rest());
    CHECK(numbers(box.take()) == std::vector<int>{2});
    CHECK(box.rest());
    CHECK(box.push(c));
    CHECK(numbers(box.take()) == std::vector<int>{3});
    CHECK(box.rest());
}

TEST_CASE("a node can be pushed again after it was taken")
{
    mpsc_inbox box;
    numbered a(0, 1), b(0, 2);
    for (int round = 0; round < 3; ++round) {
        CHECK(box.push(b));
        CHECK_FALSE(box.push(a));
        CHECK(numbers(box.take()) == std::vector<int>{2, 1});
        CHECK(box.rest());
    }
}

TEST_CASE("under contention no node is lost, each producer keeps its order and consumers never overlap")
{
    constexpr int producers = 4;
    constexpr int each = 5000;
    mpsc_inbox box;
    std::vector<std::vector<numbered>> nodes(producers);
    for (int p = 0; p < producers; ++p)
        for (int n = 0; n < each; ++n)
            nodes[static_cast<std::size_t>(p)].emplace_back(p, n);

    // Not atomic: only the inbox orders one consumer after another, and the sanitizer detects it if it does not.
    std::vector<int> next(producers, 0);
    bool in_order = true;
    int taken = 0;
    int turns = 0;
    std::atomic<int> consuming{0};
    std::atomic<bool> overlapped{false};

    // The thread whose push() returns true is the consumer.
    auto consume = [&] {
        do {
            if (consuming.fetch_add(1, std::memory_order_relaxed) != 0)
                overlapped = true;
            ++turns;
            for (inbox_node* node = box.take(); node;) {
                auto* n = static_cast<numbered*>(node);
                node = node->next;
                in_order &= n->number == next[static_cast<std::size_t>(n->producer)]++;
                ++taken;
            }
            consuming.fetch_sub(1, std::memory_order_relaxed);
        } while (!box.rest());
    };
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p)
        threads.emplace_back([&, p] {
            for (auto& n : nodes[static_cast<std::size_t>(p)])
                if (box.push(n))
                    consume();
        });
    for (auto& t : threads)
        t.join();
    CHECK(taken == producers * each);
    CHECK(in_order);
    CHECK_FALSE(overlapped);
    CHECK(turns > 0);
    numbered last;
    CHECK(box.push(last));
}

TEST_SUITE_END();

} // namespace test_core_mpsc_inbox
