#include "telemetry/trace_rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace test_telemetry_trace_rows {
namespace {

using coaccel::detail::assign_trace_rows;
using coaccel::detail::trace_period;
using rows = std::vector<std::uint32_t>;

TEST_SUITE_BEGIN("trace_rows");

TEST_CASE("periods that overlap get different rows")
{
    CHECK(assign_trace_rows({}) == rows{});
    const trace_period after[] = {{0, 0, 5}, {0, 5, 9}, {0, 9, 9}};
    CHECK(assign_trace_rows(after) == rows{0, 0, 0});
    const trace_period nested[] = {{0, 0, 9}, {0, 2, 3}, {0, 3, 10}, {0, 9, 11}};
    CHECK(assign_trace_rows(nested) == rows{0, 1, 1, 0});
}

TEST_CASE("tracks are independent, and the order of the periods does not matter")
{
    const trace_period periods[] = {{1, 4, 6}, {0, 4, 6}, {1, 0, 5}};
    CHECK(assign_trace_rows(periods) == rows{1, 0, 0});
}

TEST_CASE("random periods never overlap in a row, and use as few rows as possible")
{
    std::mt19937 random(1);
    std::uniform_int_distribution<std::int64_t> at(0, 100), length(0, 20);
    for (int round = 0; round < 50; ++round) {
        std::vector<trace_period> periods;
        for (int i = 0; i < 60; ++i) {
            const auto begin = at(random);
            periods.push_back({0, begin, begin + length(random)});
        }
        const auto got = assign_trace_rows(periods);
        for (std::size_t i = 0; i < got.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (got[i] == got[j])
                    CHECK((periods[i].end <= periods[j].begin || periods[j].end <= periods[i].begin));
        std::uint32_t most = 0;
        for (std::int64_t t = 0; t <= 120; ++t)
            most = std::max(most, static_cast<std::uint32_t>(std::ranges::count_if(
                                      periods, [t](const trace_period& p) { return p.begin <= t && t < p.end; })));
        // Periods without a length may need one row more.
        CHECK(std::ranges::max(got) <= most);
    }
}

TEST_SUITE_END();

} // namespace
} // namespace test_telemetry_trace_rows
