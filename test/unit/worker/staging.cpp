#include "worker/transport/staging.hpp"

#include "support/told.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace test_worker_staging {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;

std::shared_ptr<staging> make(std::uint64_t bytes)
{
    auto made = staging::create(bytes);
    REQUIRE(made);
    return made.value();
}

std::uint64_t take_all(staging& s, std::uint64_t bytes)
{
    std::uint64_t n = 0;
    while (s.take(bytes))
        ++n;
    return n;
}

} // namespace

TEST_SUITE_BEGIN("staging");

TEST_CASE("the staging area has whole pages and a descriptor for the worker")
{
    for (const auto bytes : {mib, mib + 1, 2 * mib - 1}) {
        const auto s = make(bytes);
        CHECK(s->bytes() >= bytes);
        CHECK(s->bytes() - bytes < 4096);
        CHECK(s->bytes() % 4096 == 0);
        CHECK(s->fd() >= 0);
        CHECK(s->pinned() == 0);
        std::memset(s->at(0), 1, s->bytes());
    }
}

TEST_CASE("impossible sizes are refused")
{
    CHECK(staging::create(0).error() == errc::invalid_option);
    CHECK(staging::create(std::uint64_t(1) << 60).error() == errc::out_of_memory);
    CHECK(staging::create(~std::uint64_t(0)).has_error());
}

TEST_CASE("pinned buffers leave room for copies")
{
    for (const auto bytes : {mib, 4 * mib, 64 * mib}) {
        CAPTURE(bytes);
        const auto s = make(bytes);
        const auto kept = std::max(bytes / 8, 512 * kib);
        std::vector<void*> all;
        for (;;) {
            const auto got = s->try_allocate(64 * kib);
            REQUIRE(got);
            if (!got.value())
                break;
            all.push_back(got.value());
        }
        CHECK(s->pinned() == all.size() * 64 * kib);
        CHECK(all.size() * 64 * kib == bytes - kept);
        CHECK(take_all(*s, 64 * kib) * 64 * kib == kept);
        for (void* p : all)
            s->release(p);
        CHECK(s->pinned() == 0);
    }
}

TEST_CASE("an impossible pinned buffer is an error, and one that must wait is not")
{
    const auto s = make(4 * mib);
    const auto most = 4 * mib - 512 * kib;
    CHECK(s->try_allocate(most + 1).error() == errc::out_of_memory);
    CHECK(s->try_allocate(~std::size_t(0)).error() == errc::out_of_memory);
    const auto all = s->try_allocate(most);
    REQUIRE(all);
    REQUIRE(all.value());
    const auto put_off = s->try_allocate(1);
    REQUIRE(put_off);
    CHECK(put_off.value() == nullptr);
    s->release(all.value());
    const auto again = s->try_allocate(1);
    REQUIRE(again);
    REQUIRE(again.value());
    s->release(again.value());
    CHECK(s->pinned() == 0);
}

TEST_CASE("copies may fill the whole area and release it")
{
    const auto s = make(mib);
    const auto whole = s->take(mib);
    REQUIRE(whole);
    CHECK(*whole == 0);
    CHECK_FALSE(s->take(1));
    const auto pinned = s->try_allocate(4096);
    REQUIRE(pinned);
    CHECK(pinned.value() == nullptr);
    s->give_back(*whole);
    CHECK(s->take(mib));
    CHECK_FALSE(s->take(mib + 1));
}

TEST_CASE("an address range is found in the area only if the area contains all of it")
{
    const auto s = make(mib);
    std::byte* const base = s->at(0);
    CHECK(s->offset_of(base, mib) == 0);
    CHECK(s->offset_of(base, 0) == 0);
    CHECK(s->offset_of(base + 17, 100) == 17);
    CHECK(s->offset_of(base + mib - 1, 1) == mib - 1);
    CHECK(s->offset_of(base + mib, 0) == mib);
    CHECK_FALSE(s->offset_of(base, mib + 1));
    CHECK_FALSE(s->offset_of(base + 1, mib));
    CHECK_FALSE(s->offset_of(base + mib, 1));
    CHECK_FALSE(s->offset_of(base + mib - 1, 2));
    CHECK_FALSE(s->offset_of(base + 1, ~std::uint64_t(0)));
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    CHECK_FALSE(s->offset_of(reinterpret_cast<const void*>(address - 1), 1));
    CHECK_FALSE(s->offset_of(reinterpret_cast<const void*>(address - 1), 2));
    CHECK_FALSE(s->offset_of(reinterpret_cast<const void*>(address + mib + 1), 0));
    CHECK_FALSE(s->offset_of(nullptr, 0));
    int local = 0;
    CHECK_FALSE(s->offset_of(&local, sizeof(local)));
    const auto pinned = s->try_allocate(1000).value();
    REQUIRE(pinned);
    CHECK(s->at(*s->offset_of(pinned, 1000)) == pinned);
    s->release(pinned);
}

TEST_CASE("the listener is called once when memory is released after a failed allocation")
{
    const auto s = make(mib);
    test::told l;
    s->listen(l.call());
    const auto whole = *s->take(mib);
    s->give_back(whole);
    CHECK(l.count() == 0);
    const auto again = *s->take(mib);
    CHECK_FALSE(s->take(4096));
    CHECK_FALSE(s->take(4096));
    CHECK(l.count() == 0);
    s->give_back(again);
    CHECK(l.count() == 1);
    s->give_back(*s->take(4096));
    CHECK(l.count() == 1);

    void* const pinned = s->try_allocate(512 * kib).value();
    CHECK(s->try_allocate(4096).value() == nullptr);
    s->release(pinned);
    CHECK(l.count() == 2);

    s->listen({});
    const auto last = *s->take(mib);
    CHECK_FALSE(s->take(1));
    s->give_back(last);
    CHECK(l.count() == 2);
}

TEST_CASE("the removal of an old listener keeps its successor")
{
    const auto s = make(mib);
    test::told before;
    test::told after;
    s->listen(before.call());
    s->listen(after.call());
    s->listen({});
    const auto whole = *s->take(mib);
    CHECK_FALSE(s->take(1));
    s->give_back(whole);
    CHECK(before.count() == 0);
    CHECK(after.count() == 1);
    s->listen({});
    const auto again = *s->take(mib);
    CHECK_FALSE(s->take(1));
    s->give_back(again);
    CHECK(after.count() == 1);
}

TEST_CASE("threads that allocate and release concurrently never get the same memory")
{
    const auto s = make(mib);
    test::told l;
    s->listen(l.call());
    std::atomic<int> wrong{0};
    const auto work = [&](int mark) {
        for (int i = 0; i < 2000; ++i) {
            const std::size_t bytes = 300 + 1000 * static_cast<std::size_t>(i % 7);
            const auto offset = s->take(bytes);
            void* const pinned = mark % 2 ? s->try_allocate(bytes).value() : nullptr;
            if (offset) {
                std::memset(s->at(*offset), mark, bytes);
                wrong += s->at(*offset)[bytes - 1] != static_cast<std::byte>(mark);
            }
            if (pinned) {
                std::memset(pinned, mark, bytes);
                s->release(pinned);
            }
            if (offset)
                s->give_back(*offset);
        }
    };
    std::vector<std::thread> all;
    for (int i = 1; i <= 4; ++i)
        all.emplace_back(work, i);
    for (auto& t : all)
        t.join();
    s->listen({});
    CHECK(wrong == 0);
    CHECK(s->pinned() == 0);
    CHECK(s->take(mib));
}

TEST_SUITE_END();

} // namespace test_worker_staging
