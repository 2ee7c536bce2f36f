#include "cuda/memory/pinned_slabs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace test_cuda_pinned_slabs {

namespace {

using slabs = coaccel::cuda::pinned_slabs;
using client = slabs::client;
using verdict = slabs::verdict;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// Grants all growth at once, at made-up addresses.
struct granted {
    explicit granted(std::uint64_t limit, std::uint64_t reserve = 0) : pages(limit, reserve) {}

    slabs::answer take(std::size_t bytes, client who = client::user)
    {
        auto a = pages.take(bytes, who);
        while (a.what == verdict::grow) {
            grant(a);
            a = pages.take(bytes, who);
        }
        return a;
    }

    void grant(const slabs::answer& a)
    {
        slabs::slab made = a.wanted;
        made.base = next;
        next += made.bytes + mib;
        pages.grown(made);
    }

    slabs pages;
    std::uintptr_t next = mib;
};

} // namespace

TEST_SUITE_BEGIN("pinned_slabs");

TEST_CASE("requests are rounded up to a block size, and the first request of a size grows a slab")
{
    struct row {
        std::size_t bytes;
        std::size_t block;
        std::size_t slab;
    };
    const row rows[] = {
        {0, 256, 2 * mib},
        {1, 256, 2 * mib},
        {256, 256, 2 * mib},
        {257, 512, 2 * mib},
        {64 * kib, 64 * kib, 2 * mib},
        {256 * kib, 256 * kib, 2 * mib},
        {256 * kib + 1, 512 * kib, 4 * mib},
        {1 * mib, 1 * mib, 8 * mib},
        {2 * mib, 2 * mib, 16 * mib},
        {3 * mib, 4 * mib, 16 * mib},
        {4 * mib, 4 * mib, 16 * mib},
        {4 * mib + 1, 6 * mib, 6 * mib},
        {8 * mib, 8 * mib, 8 * mib},
        {100 * mib - 1, 100 * mib, 100 * mib},
    };
    for (const auto& r : rows) {
        CAPTURE(r.bytes);
        slabs b(512 * mib);
        CHECK(b.block_for(r.bytes) == r.block);
        const auto a = b.take(r.bytes);
        CHECK(a.what == verdict::grow);
        CHECK(a.wanted.size_class.block_bytes == r.block);
        CHECK(a.wanted.bytes == r.slab);
        CHECK(a.give_up.empty());
    }
}

TEST_CASE("a request above the limit is never granted, and a request at the limit is")
{
    CHECK(slabs(512 * mib).take(512 * mib).what == verdict::grow);
    CHECK(slabs(512 * mib).take(512 * mib + 1).what == verdict::never);
    CHECK(slabs(512 * mib).take(SIZE_MAX).what == verdict::never);
    CHECK(slabs(0).take(1).what == verdict::never);
    CHECK(slabs(4095).take(1).what == verdict::never);
    CHECK(slabs(4096).take(1).wanted.bytes == 4096);
    CHECK(slabs(3 * mib).take(3 * mib).wanted.bytes == 3 * mib);
    CHECK(slabs(5 * mib).take(5 * mib).wanted.bytes == 5 * mib);
    CHECK(slabs(5 * mib).take(5 * mib - 4097).wanted.bytes == 5 * mib - 4096);
}

TEST_CASE("a slab is smaller where the limit leaves no room for a full one")
{
    granted g(3 * mib);
    const auto a = g.pages.take(1 * mib);
    CHECK(a.what == verdict::grow);
    CHECK(a.wanted.bytes == 2 * mib);
    g.grant(a);
    CHECK(g.take(mib).what == verdict::have);
    CHECK(g.take(mib).what == verdict::have);
    const auto last = g.pages.take(mib);
    CHECK(last.wanted.bytes == mib);
    g.grant(last);
    CHECK(g.take(mib).what == verdict::have);
    CHECK(g.take(mib).what == verdict::wait);
    CHECK(g.pages.used() == 3 * mib);
}

TEST_CASE("only one slab of a size grows at a time")
{
    granted g(512 * mib);
    const auto a = g.pages.take(1000);
    CHECK(a.what == verdict::grow);
    CHECK(g.pages.take(1024).what == verdict::wait);
    CHECK(g.pages.take(2048).what == verdict::grow);
    g.grant(a);
    CHECK(g.pages.take(1000).what == verdict::have);
}

TEST_CASE("a growing slab counts against the limit until it fails")
{
    slabs b(16 * mib);
    CHECK(b.take(4 * mib).wanted.bytes == 16 * mib);
    CHECK(b.take(1).what == verdict::wait);
    CHECK(b.reserved() == 0);
    b.not_grown({client::user, 4 * mib});
    CHECK(b.take(1).what == verdict::grow);
    CHECK(b.take(4 * mib).wanted.bytes == 8 * mib);
}

TEST_CASE("all blocks of a slab are used before the next slab grows")
{
    granted g(512 * mib);
    std::set<std::uintptr_t> blocks;
    for (int i = 0; i < 32; ++i) {
        const auto a = g.take(64 * kib);
        CHECK(a.what == verdict::have);
        CHECK(blocks.insert(a.block).second);
    }
    CHECK(*blocks.rbegin() - *blocks.begin() == 31 * 64 * kib);
    CHECK(g.pages.reserved() == 2 * mib);
    CHECK(g.pages.used() == 2 * mib);
    CHECK_FALSE(g.pages.has_free({client::user, 64 * kib}));
    const std::uintptr_t some = *std::next(blocks.begin(), 7);
    g.pages.give_back(some);
    CHECK(g.pages.has_free({client::user, 64 * kib}));
    CHECK(g.take(64 * kib).block == some);
    CHECK(g.pages.take(64 * kib).what == verdict::grow);
}

TEST_CASE("unused slabs of another size are dropped only for room, and no more than needed")
{
    granted g(24 * mib);
    const auto small = g.take(1);
    const auto large = g.take(8 * mib);
    const auto medium = g.take(1 * mib);
    CHECK(g.pages.reserved() == 18 * mib);
    CHECK(g.pages.take(10 * mib).what == verdict::wait);
    g.pages.give_back(small.block);
    CHECK(g.pages.take(10 * mib).what == verdict::wait);
    g.pages.give_back(medium.block);
    const auto a = g.pages.take(10 * mib);
    CHECK(a.what == verdict::grow);
    REQUIRE(a.give_up.size() == 1);
    CHECK(a.give_up[0].bytes == 8 * mib);
    CHECK(a.give_up[0].size_class.block_bytes == mib);
    CHECK(g.pages.reserved() == 10 * mib);
    // The slab is added again if it could not be given up.
    g.pages.not_grown({client::user, 10 * mib});
    g.pages.add(a.give_up[0]);
    CHECK(g.take(mib).what == verdict::have);
    g.pages.give_back(large.block);
    CHECK(g.take(8 * mib).block == large.block);
}

TEST_CASE("slabs are dropped one by one, either unused ones or any")
{
    granted g(512 * mib);
    const auto kept = g.take(1);
    const auto gone = g.take(6 * mib);
    CHECK_FALSE(g.pages.drop_unused());
    g.pages.give_back(gone.block);
    const auto dropped = g.pages.drop_unused();
    REQUIRE(dropped);
    CHECK(dropped->base == gone.block);
    CHECK(dropped->bytes == 6 * mib);
    CHECK_FALSE(g.pages.drop_unused());
    CHECK(g.pages.used() == 256);
    CHECK(g.pages.reserved() == 2 * mib);
    CHECK(g.take(1).block == kept.block + 256);
    CHECK(g.pages.drop_any()->bytes == 2 * mib);
    CHECK_FALSE(g.pages.drop_any());
    CHECK(g.pages.used() == 0);
    CHECK(g.pages.reserved() == 0);
    CHECK(g.take(1).what == verdict::have);
}

TEST_CASE("users never get the reserve, and a client::own request is at most the reserve")
{
    const slabs b(10 * mib, 2 * mib);
    CHECK(b.block_for(8 * mib) == 8 * mib);
    CHECK(b.block_for(8 * mib + 1) == 0);
    CHECK(b.block_for(2 * mib, client::own) == 2 * mib);
    CHECK(b.block_for(2 * mib + 1, client::own) == 0);
    CHECK(slabs(8192, 4096).take(4096).wanted.bytes == 4096);
    CHECK(slabs(8192, 4096).take(4097, client::own).what == verdict::never);
    CHECK(slabs(4096, 4096).take(1).what == verdict::never);
    CHECK(slabs(4096, 4096).take(1, client::own).wanted.bytes == 4096);
}

TEST_CASE("client::own requests of any size succeed, whatever users hold")
{
    for (const std::size_t each : {std::size_t(1), 64 * kib, 1 * mib, 3 * mib, 8 * mib}) {
        CAPTURE(each);
        granted g(10 * mib, 2 * mib);
        std::vector<std::uintptr_t> held;
        for (auto a = g.take(each); a.what == verdict::have; a = g.take(each))
            held.push_back(a.block);
        // One block in use is enough to keep a slab.
        std::set<std::uintptr_t> slabs;
        for (const std::uintptr_t block : held)
            if (!slabs.insert(block / (2 * mib)).second)
                g.pages.give_back(block);
        CHECK_FALSE(slabs.empty());
        for (const std::size_t own : {std::size_t(1), 64 * kib, 1 * mib, 2 * mib}) {
            CAPTURE(own);
            const auto a = g.take(own, client::own);
            CHECK(a.what == verdict::have);
            g.pages.give_back(a.block);
        }
        CHECK(g.pages.reserved() <= 10 * mib);
    }
}

TEST_CASE("client::own requests may use memory beyond the reserve, and users get it when it is unused")
{
    granted g(10 * mib, 2 * mib);
    std::vector<std::uintptr_t> own;
    for (int i = 0; i < 10; ++i)
        own.push_back(g.take(mib, client::own).block);
    CHECK(g.take(mib, client::own).what == verdict::wait);
    CHECK(g.take(8 * mib).what == verdict::wait);
    for (const std::uintptr_t block : own)
        g.pages.give_back(block);
    CHECK(g.take(8 * mib).what == verdict::have);
    CHECK(g.take(1).what == verdict::wait);
    CHECK(g.take(mib, client::own).what == verdict::have);
}

TEST_CASE("blocks never overlap and the counts are right, for random requests and releases")
{
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (const std::uint64_t limit : {std::uint64_t(64 * kib), std::uint64_t(5 * mib), std::uint64_t(64 * mib)}) {
        CAPTURE(limit);
        const std::uint64_t reserve = limit / 4;
        slabs b(limit, reserve);
        std::map<std::uintptr_t, std::size_t> slabs;
        std::map<std::uintptr_t, std::size_t> held;
        std::set<std::uintptr_t> held_by_own;
        std::vector<slabs::slab> coming;
        std::uintptr_t next = mib;
        std::uint64_t used = 0;
        auto settle = [&](std::size_t i) {
            slabs::slab s = coming[i];
            coming.erase(coming.begin() + static_cast<std::ptrdiff_t>(i));
            if (random() % 4 == 0)
                return b.not_grown(s.size_class);
            s.base = next;
            next += s.bytes + (random() % 3) * mib;
            slabs.emplace(s.base, s.bytes);
            b.grown(s);
        };
        auto reserved = [&] {
            std::uint64_t sum = 0;
            for (const auto& [base, bytes] : slabs)
                sum += bytes;
            return sum;
        };
        for (int step = 0; step < 20000; ++step) {
            const auto what = random() % 10;
            if (what < 5) {
                const std::size_t bytes = random() % (std::size_t(1) << (random() % 24)) + 1;
                const auto who = random() % 2 ? client::own : client::user;
                const std::size_t block = b.block_for(bytes, who);
                const auto a = b.take(bytes, who);
                REQUIRE((a.what == verdict::never) == (block == 0));
                if (a.what == verdict::have) {
                    auto in = slabs.upper_bound(a.block);
                    REQUIRE(in != slabs.begin());
                    --in;
                    REQUIRE(a.block + bytes <= in->first + in->second);
                    auto after = held.lower_bound(a.block);
                    REQUIRE((after == held.end() || a.block + block <= after->first));
                    REQUIRE((after == held.begin() || std::prev(after)->first + std::prev(after)->second <= a.block));
                    held.emplace(a.block, block);
                    if (who == client::own)
                        held_by_own.insert(a.block);
                    used += block;
                } else if (a.what == verdict::grow) {
                    for (const auto& s : a.give_up) {
                        const auto inside = held.lower_bound(s.base);
                        REQUIRE((inside == held.end() || inside->first >= s.base + s.bytes));
                        REQUIRE(slabs.erase(s.base) == 1);
                    }
                    coming.push_back(a.wanted);
                    std::uint64_t all = reserved();
                    for (const auto& s : coming)
                        all += s.bytes;
                    REQUIRE(all <= limit);
                } else if (a.what == verdict::wait) {
                    REQUIRE((!held.empty() || !coming.empty()));
                    const auto is_own = [](const slabs::slab& s) { return s.size_class.who == client::own; };
                    if (who == client::own)
                        REQUIRE((!held_by_own.empty() || std::ranges::any_of(coming, is_own)));
                }
            } else if (what < 9 && !held.empty()) {
                auto victim = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
                used -= victim->second;
                b.give_back(victim->first);
                held_by_own.erase(victim->first);
                held.erase(victim);
            } else if (!coming.empty()) {
                settle(random() % coming.size());
            } else if (random() % 50 == 0) {
                if (const auto s = b.drop_unused())
                    REQUIRE(slabs.erase(s->base) == 1);
            }
            REQUIRE(b.used() == used);
            REQUIRE(b.reserved() == reserved());
        }
    }
}

TEST_SUITE_END();

} // namespace test_cuda_pinned_slabs
