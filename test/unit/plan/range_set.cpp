#include "plan/range_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace test_plan_range_set {

TEST_SUITE_BEGIN("range_set");

TEST_CASE("the first gap is that of a set of single elements")
{
    std::mt19937 random(7);
    constexpr std::uint64_t size = 40;
    for (int round = 0; round < 300; ++round) {
        coaccel::detail::range_set set;
        std::vector<bool> expected(size);
        for (int i = 0; i < 12; ++i) {
            const std::uint64_t begin = random() % size;
            const std::uint64_t end = begin + random() % std::min<std::uint64_t>(8, size - begin + 1);
            set.add(begin, end);
            for (auto e = begin; e < end; ++e)
                expected[e] = true;
            const std::uint64_t from = random() % size;
            const std::uint64_t to = from + random() % (size - from + 1);
            auto first = from;
            while (first < to && expected[first])
                ++first;
            auto last = first;
            while (last < to && !expected[last])
                ++last;
            const auto gap = set.first_gap(from, to);
            REQUIRE(gap.has_value() == (first != to));
            if (gap) {
                CHECK(gap->begin == first);
                CHECK(gap->end == last);
            }
        }
    }
}

TEST_SUITE_END();

} // namespace test_plan_range_set
