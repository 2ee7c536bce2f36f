#include "core/log_queue.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_core_log_queue {

namespace {

using coaccel::log_level;
using coaccel::detail::log_queue;

} // namespace

TEST_SUITE_BEGIN("log_queue");

TEST_CASE("messages leave the queue in order")
{
    log_queue q;
    CHECK(q.empty());
    CHECK_FALSE(q.pop());
    q.push(log_level::info, "one");
    q.push(log_level::error, "two");
    const auto one = q.pop();
    REQUIRE(one);
    CHECK(one->level == log_level::info);
    CHECK(one->text == "one");
    CHECK(q.pop()->text == "two");
    CHECK(q.empty());
}

TEST_CASE("messages beyond the bound are dropped, and their count takes their place")
{
    log_queue q;
    for (std::size_t i = 0; i < log_queue::most_messages + 3; ++i)
        q.push(log_level::info, std::to_string(i));
    CHECK(q.pop()->text == "0");
    q.push(log_level::info, "later");
    for (std::size_t i = 1; i < log_queue::most_messages; ++i)
        CHECK(q.pop()->text == std::to_string(i));
    const auto count = q.pop();
    REQUIRE(count);
    CHECK(count->text == "log: 3 messages dropped");
    CHECK(count->level == log_level::warning);
    CHECK(q.pop()->text == "later");
    CHECK(q.empty());
}

TEST_CASE("the count is delivered even if no message follows")
{
    log_queue q;
    q.push(log_level::info, "one");
    q.drop();
    CHECK(q.pop()->text == "one");
    CHECK_FALSE(q.empty());
    CHECK(q.pop()->text == "log: 1 message dropped");
    CHECK(q.empty());
    CHECK_FALSE(q.pop());
}

TEST_CASE("the bound also limits bytes, and a message that is too long is cut")
{
    log_queue q;
    const std::string text(2 * log_queue::longest_text, 'x');
    std::size_t taken = 0;
    for (; q.has_room(text); ++taken)
        q.push(log_level::info, text);
    CHECK(taken == log_queue::most_bytes / log_queue::longest_text);
    CHECK_FALSE(q.has_room("y"));
    q.push(log_level::info, "y");
    for (std::size_t i = 0; i < taken; ++i)
        CHECK(q.pop()->text.size() == log_queue::longest_text);
    CHECK(q.pop()->text == "log: 1 message dropped");
    // The full capacity is available again.
    for (std::size_t i = 0; i < taken; ++i) {
        REQUIRE(q.has_room(text));
        q.push(log_level::info, text);
    }
}

TEST_SUITE_END();

} // namespace test_core_log_queue
