#include "worker/parent/reply_slots.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace test_worker_reply_slots {

TEST_SUITE_BEGIN("reply_slots");

namespace {

using coaccel::worker::reply_slots;

}

TEST_CASE("each entry is found under its own number until it is taken")
{
    reply_slots<int> slots;
    CHECK(slots.empty());
    const auto a = slots.add(1);
    const auto b = slots.add(2);
    CHECK(slots.size() == 2);
    REQUIRE(slots.find(a));
    CHECK(*slots.find(a) == 1);
    CHECK(slots.take(a) == 1);
    CHECK(slots.find(a) == nullptr);
    CHECK(*slots.find(b) == 2);
    CHECK(slots.size() == 1);
}

TEST_CASE("a number that was used is not valid again")
{
    reply_slots<int> slots;
    std::set<std::uint64_t> used;
    for (int i = 0; i < 1000; ++i) {
        const auto number = slots.add(i);
        CHECK(used.insert(number).second);
        for (const auto old : used)
            if (old != number)
                CHECK(slots.find(old) == nullptr);
        CHECK(slots.take(number) == i);
        if (used.size() > 20)
            used.erase(used.begin());
    }
}

TEST_CASE("numbers that were never given are unknown")
{
    reply_slots<int> slots;
    const auto a = slots.add(1);
    for (const std::uint64_t number :
         {std::uint64_t(0), a + 1, a + (std::uint64_t(1) << 32), a ^ (std::uint64_t(1) << 63), ~std::uint64_t(0)})
        CHECK(slots.find(number) == nullptr);
}

TEST_CASE("for_each reaches every entry that is awaited")
{
    reply_slots<int> slots;
    const auto a = slots.add(1);
    slots.add(2);
    slots.add(3);
    (void)slots.take(a);
    std::vector<int> seen;
    slots.for_each([&](int& i) { seen.push_back(i++); });
    CHECK(seen == std::vector{2, 3});
    seen.clear();
    slots.for_each([&](const int& i) { seen.push_back(i); });
    CHECK(seen == std::vector{3, 4});
}

TEST_SUITE_END();

} // namespace test_worker_reply_slots
