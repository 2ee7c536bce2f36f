#include "worker/transport/range_allocator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace test_worker_range_allocator {

namespace {

using coaccel::worker::range_allocator;

constexpr std::uint64_t page = range_allocator::page;
constexpr std::uint64_t grain = range_allocator::grain;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/// One byte of bookkeeping for each 256 bytes of the area; finds the best fit by a linear search.
class naive_ranges {
public:
    explicit naive_ranges(std::uint64_t bytes) : taken_(bytes / grain) {}

    std::optional<std::uint64_t> take(std::uint64_t bytes) const
    {
        const bool paged = bytes >= page;
        const auto unit = paged ? page : grain;
        const auto size = round_up(bytes, unit);
        std::optional<std::uint64_t> best;
        std::uint64_t best_size = std::numeric_limits<std::uint64_t>::max();
        for (std::uint64_t i = 0; i < taken_.size();) {
            auto end = i;
            while (end < taken_.size() && !taken_[end])
                ++end;
            const auto from = round_up(i * grain, unit);
            const auto to = end * grain / unit * unit;
            if (to >= from && to - from >= size && to - from < best_size) {
                best = from;
                best_size = to - from;
            }
            i = end + 1;
        }
        return best;
    }

    bool all(std::uint64_t offset, std::uint64_t bytes, bool taken) const
    {
        const auto begin = taken_.begin() + std::ptrdiff_t(offset / grain);
        return std::all_of(begin, begin + std::ptrdiff_t(bytes / grain), [=](bool t) { return t == taken; });
    }

    void mark(std::uint64_t offset, std::uint64_t bytes, bool taken)
    {
        const auto begin = taken_.begin() + std::ptrdiff_t(offset / grain);
        std::fill(begin, begin + std::ptrdiff_t(bytes / grain), taken);
    }

private:
    std::vector<bool> taken_;
};

} // namespace

TEST_SUITE_BEGIN("range_allocator");

TEST_CASE("sizes are rounded up")
{
    range_allocator ranges(16 * page);
    CHECK(ranges.unused());
    CHECK(ranges.size_at(ranges.take(0).value()) == 256);
    CHECK(ranges.size_at(ranges.take(1).value()) == 256);
    CHECK(ranges.size_at(ranges.take(257).value()) == 512);
    CHECK(ranges.size_at(ranges.take(4095).value()) == 4096);
    CHECK(ranges.used() == 256 + 256 + 512 + 4096);
    const auto large = ranges.take(4097).value();
    CHECK(large % page == 0);
    CHECK(ranges.size_at(large) == 8192);
    CHECK(ranges.size_at(large + 256) == 0);
    CHECK_FALSE(ranges.unused());
}

TEST_CASE("a range that does not fit is refused")
{
    range_allocator ranges(2 * page + 300);
    CHECK_FALSE(ranges.take(3 * page));
    CHECK_FALSE(ranges.take(2 * page + 1));
    CHECK_FALSE(ranges.take(std::numeric_limits<std::uint64_t>::max()));
    CHECK(ranges.take(2 * page) == 0u);
    CHECK(ranges.take(256) == 2 * page);
    CHECK_FALSE(ranges.take(1));
    CHECK_FALSE(range_allocator(255).take(1));
    CHECK_FALSE(range_allocator(0).take(0));
}

TEST_CASE("the smallest hole that fits is used")
{
    range_allocator ranges(64 * page);
    std::vector<std::uint64_t> all;
    for (const std::uint64_t pages : {8, 1, 3, 1, 2, 1})
        all.push_back(ranges.take(pages * page).value());
    ranges.give_back(all[0]);
    ranges.give_back(all[2]);
    ranges.give_back(all[4]);
    CHECK(ranges.take(2 * page) == all[4]);
    CHECK(ranges.take(2 * page) == all[2]);
    CHECK(ranges.take(2 * page) == all[0]);
}

TEST_CASE("a hole that is too small after page alignment is skipped")
{
    range_allocator ranges(4 * page);
    CHECK(ranges.take(256) == 0u);
    CHECK(ranges.take(256) == 256u);
    CHECK(ranges.take(2 * page) == page);
    CHECK(ranges.take(page) == 3 * page);
    CHECK_FALSE(ranges.take(page));
    CHECK(ranges.take(page - 512) == 512u);
    CHECK_FALSE(ranges.take(1));
}

TEST_CASE("adjacent free ranges are merged in any order")
{
    std::vector<int> order{0, 1, 2, 3};
    do {
        range_allocator ranges(4 * page);
        for (int i = 0; i < 4; ++i)
            CHECK(ranges.take(page) == std::uint64_t(i) * page);
        for (const int i : order)
            ranges.give_back(std::uint64_t(i) * page);
        CHECK(ranges.unused());
        CHECK(ranges.take(4 * page) == 0u);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("random use agrees with a naive allocator")
{
    for (unsigned seed = 1; seed <= 8; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        const std::uint64_t bytes = 96 * page + seed % 4 * grain;
        range_allocator ranges(bytes);
        naive_ranges naive(bytes);
        std::map<std::uint64_t, std::uint64_t> taken;
        std::uint64_t used = 0;
        int refused = 0;
        for (int i = 0; i < 3000; ++i) {
            if (taken.empty() || random() % 100 < 55) {
                const auto wanted = random() % 2 ? 1 + random() % (page - 1) : page + random() % (6 * page);
                const auto expected = naive.take(wanted);
                const auto got = ranges.take(wanted);
                REQUIRE(got.has_value() == expected.has_value());
                refused += !got;
                if (!got)
                    continue;
                const auto size = ranges.size_at(*got);
                REQUIRE(size == round_up(wanted, wanted < page ? grain : page));
                REQUIRE(*got == *expected);
                REQUIRE(*got + size <= bytes);
                REQUIRE(naive.all(*got, size, false));
                naive.mark(*got, size, true);
                taken.emplace(*got, size);
                used += size;
            } else {
                const auto one = std::next(taken.begin(), std::ptrdiff_t(random() % taken.size()));
                REQUIRE(ranges.size_at(one->first) == one->second);
                ranges.give_back(one->first);
                REQUIRE(ranges.size_at(one->first) == 0);
                naive.mark(one->first, one->second, false);
                used -= one->second;
                taken.erase(one);
            }
            REQUIRE(ranges.used() == used);
        }
        CHECK(refused > 0);
        for (const auto& range : taken)
            ranges.give_back(range.first);
        CHECK(ranges.unused());
        CHECK(ranges.take(bytes / page * page) == 0u);
    }
}

TEST_SUITE_END();

} // namespace test_worker_range_allocator
