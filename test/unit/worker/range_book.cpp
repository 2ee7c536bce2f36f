#include "worker/range_book.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace {

using coaccel::worker::range_book;

constexpr std::uint64_t page = range_book::page;
constexpr std::uint64_t grain = range_book::grain;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/// One byte of bookkeeping for each 256 bytes of the area; finds the best fit by looking at all of it.
class naive_book {
public:
    explicit naive_book(std::uint64_t bytes) : taken_(bytes / grain) {}

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

TEST_SUITE_BEGIN("range_book");

TEST_CASE("sizes are rounded")
{
    range_book book(16 * page);
    CHECK(book.unused());
    CHECK(book.size_at(book.take(0).value()) == 256);
    CHECK(book.size_at(book.take(1).value()) == 256);
    CHECK(book.size_at(book.take(257).value()) == 512);
    CHECK(book.size_at(book.take(4095).value()) == 4096);
    CHECK(book.used() == 256 + 256 + 512 + 4096);
    const auto large = book.take(4097).value();
    CHECK(large % page == 0);
    CHECK(book.size_at(large) == 8192);
    CHECK(book.size_at(large + 256) == 0);
    CHECK_FALSE(book.unused());
}

TEST_CASE("what does not fit is refused")
{
    range_book book(2 * page + 300);
    CHECK_FALSE(book.take(3 * page));
    CHECK_FALSE(book.take(2 * page + 1));
    CHECK_FALSE(book.take(std::numeric_limits<std::uint64_t>::max()));
    CHECK(book.take(2 * page) == 0u);
    CHECK(book.take(256) == 2 * page);
    CHECK_FALSE(book.take(1));
    CHECK_FALSE(range_book(255).take(1));
    CHECK_FALSE(range_book(0).take(0));
}

TEST_CASE("the smallest hole that fits is taken")
{
    range_book book(64 * page);
    std::vector<std::uint64_t> all;
    for (const std::uint64_t pages : {8, 1, 3, 1, 2, 1})
        all.push_back(book.take(pages * page).value());
    book.give_back(all[0]);
    book.give_back(all[2]);
    book.give_back(all[4]);
    CHECK(book.take(2 * page) == all[4]);
    CHECK(book.take(2 * page) == all[2]);
    CHECK(book.take(2 * page) == all[0]);
}

TEST_CASE("a hole that is large enough only off the page boundary is passed over")
{
    range_book book(4 * page);
    CHECK(book.take(256) == 0u);
    CHECK(book.take(256) == 256u);
    CHECK(book.take(2 * page) == page);
    CHECK(book.take(page) == 3 * page);
    CHECK_FALSE(book.take(page));
    CHECK(book.take(page - 512) == 512u);
    CHECK_FALSE(book.take(1));
}

TEST_CASE("neighbours are joined in any order")
{
    std::vector<int> order{0, 1, 2, 3};
    do {
        range_book book(4 * page);
        for (int i = 0; i < 4; ++i)
            CHECK(book.take(page) == std::uint64_t(i) * page);
        for (const int i : order)
            book.give_back(std::uint64_t(i) * page);
        CHECK(book.unused());
        CHECK(book.take(4 * page) == 0u);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("random use agrees with a naive book")
{
    for (unsigned seed = 1; seed <= 8; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        const std::uint64_t bytes = 96 * page + seed % 4 * grain;
        range_book book(bytes);
        naive_book naive(bytes);
        std::map<std::uint64_t, std::uint64_t> taken;
        std::uint64_t used = 0;
        int refused = 0;
        for (int i = 0; i < 3000; ++i) {
            if (taken.empty() || random() % 100 < 55) {
                const auto wanted = random() % 2 ? 1 + random() % (page - 1) : page + random() % (6 * page);
                const auto expected = naive.take(wanted);
                const auto got = book.take(wanted);
                REQUIRE(got.has_value() == expected.has_value());
                refused += !got;
                if (!got)
                    continue;
                const auto size = book.size_at(*got);
                REQUIRE(size == round_up(wanted, wanted < page ? grain : page));
                REQUIRE(*got == *expected);
                REQUIRE(*got + size <= bytes);
                REQUIRE(naive.all(*got, size, false));
                naive.mark(*got, size, true);
                taken.emplace(*got, size);
                used += size;
            } else {
                const auto one = std::next(taken.begin(), std::ptrdiff_t(random() % taken.size()));
                REQUIRE(book.size_at(one->first) == one->second);
                book.give_back(one->first);
                REQUIRE(book.size_at(one->first) == 0);
                naive.mark(one->first, one->second, false);
                used -= one->second;
                taken.erase(one);
            }
            REQUIRE(book.used() == used);
        }
        CHECK(refused > 0);
        for (const auto& range : taken)
            book.give_back(range.first);
        CHECK(book.unused());
        CHECK(book.take(bytes / page * page) == 0u);
    }
}

TEST_SUITE_END();
