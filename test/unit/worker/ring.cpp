#include "worker/transport/ring.hpp"

#include "worker/transport/doorbell.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

namespace test_worker_ring {

namespace {

using namespace std::chrono_literals;
using namespace coaccel::worker;
using coaccel::errc;

constexpr std::size_t capacity = 4096;

std::vector<std::byte> record_of(std::size_t length, std::uint64_t first)
{
    std::vector<std::byte> made(length);
    for (std::size_t i = 0; i < length; ++i)
        made[i] = static_cast<std::byte>(first * 31 + i);
    return made;
}

struct two_sides {
    void write(std::size_t length, std::uint64_t first = 0)
    {
        REQUIRE(writer.write(record_of(length, first)) == written::yes);
    }

    void set_length(std::size_t at, std::uint32_t length) { std::memcpy(data.get() + at, &length, sizeof(length)); }

    std::unique_ptr<std::byte[]> data = std::make_unique<std::byte[]>(capacity);
    ring_control control;
    ring_writer writer{control, {data.get(), capacity}};
    ring_reader reader{control, {data.get(), capacity}};
    std::vector<std::byte> got;
};

/// Lengths that are mostly small and sometimes maximal; the same sequence for both sides.
class lengths {
public:
    explicit lengths(std::size_t most) : most_(most) {}

    std::size_t next()
    {
        const auto r = random_();
        return r % 64 == 0 ? 1 + (r >> 8) % most_ : 1 + (r >> 8) % 48;
    }

private:
    std::mt19937 random_{7};
    std::size_t most_;
};

} // namespace

TEST_SUITE_BEGIN("ring");

TEST_CASE("records are read whole and in order, also across the end of the ring")
{
    two_sides s;
    CHECK_FALSE(s.reader.read(s.got).value());
    for (std::size_t i = 0; i < 5000; ++i) {
        const auto length = 1 + i % s.writer.max_record();
        s.write(length, i);
        s.write(3, i + 1);
        REQUIRE(s.reader.read(s.got).value());
        REQUIRE(s.got == record_of(length, i));
        REQUIRE(s.reader.read(s.got).value());
        REQUIRE(s.got == record_of(3, i + 1));
        REQUIRE_FALSE(s.reader.read(s.got).value());
    }
}

TEST_CASE("a full ring refuses records until one is read")
{
    two_sides s;
    CHECK(s.writer.max_record() == capacity / 4);
    CHECK(s.reader.max_record() == capacity / 4);
    const auto length = 256 - sizeof(std::uint32_t);
    for (std::size_t i = 0; i < capacity / 256; ++i)
        s.write(length, i);
    const auto one = record_of(1, 99);
    CHECK(s.writer.write(one) == written::full);
    CHECK(s.writer.write(one) == written::full);
    REQUIRE(s.reader.read(s.got).value());
    CHECK(s.got == record_of(length, 0));
    CHECK(s.writer.write(one) == written::yes);
    for (std::size_t i = 1; i < capacity / 256; ++i) {
        REQUIRE(s.reader.read(s.got).value());
        CHECK(s.got == record_of(length, i));
    }
    REQUIRE(s.reader.read(s.got).value());
    CHECK(s.got == one);
    CHECK_FALSE(s.reader.read(s.got).value());
}

TEST_CASE("the writer rings the doorbell of a sleeping reader once")
{
    two_sides s;
    s.write(8);
    CHECK_FALSE(s.writer.wants_bell());
    CHECK_FALSE(s.reader.may_sleep());
    CHECK(s.control.sleeping == 0u);
    REQUIRE(s.reader.read(s.got).value());
    CHECK(s.reader.may_sleep());
    s.write(8);
    s.write(8);
    CHECK(s.writer.wants_bell());
    CHECK_FALSE(s.writer.wants_bell());
    REQUIRE(s.reader.read(s.got).value());
    CHECK_FALSE(s.reader.may_sleep());
    REQUIRE(s.reader.read(s.got).value());
    CHECK(s.reader.may_sleep());
    s.reader.awake();
    s.write(8);
    CHECK_FALSE(s.writer.wants_bell());
}

TEST_CASE("a reader refuses an impossible position permanently")
{
    // One record of 24 bytes has been read, so the reader's position is 24. The bytes after it form a valid record.
    for (const std::uint64_t position : {std::uint64_t(0), std::uint64_t(16), std::uint64_t(25), std::uint64_t(36),
                                         24 + capacity + 8, ~std::uint64_t(0), std::uint64_t(1) << 63}) {
        CAPTURE(position);
        two_sides s;
        s.write(20);
        REQUIRE(s.reader.read(s.got).value());
        s.set_length(24, 1);
        s.control.written = position;
        CHECK_FALSE(s.reader.may_sleep());
        CHECK(s.reader.read(s.got).error() == errc::worker_corrupted);
        s.control.written = 24;
        CHECK_FALSE(s.reader.may_sleep());
        CHECK(s.reader.read(s.got).error() == errc::worker_corrupted);
    }
}

TEST_CASE("a reader refuses an impossible length")
{
    // A record of 100 bytes takes 104 bytes with its length, so one of 101 exceeds the written bytes.
    for (const std::uint32_t length : {0u, 101u, 1024u, 1025u, 4096u, ~0u, ~0u - 3}) {
        CAPTURE(length);
        two_sides s;
        s.write(100);
        s.set_length(0, length);
        CHECK(s.reader.read(s.got).error() == errc::worker_corrupted);
    }
    two_sides s;
    s.write(100);
    s.set_length(0, 97);
    REQUIRE(s.reader.read(s.got).value());
    CHECK(s.got.size() == 97);
}

TEST_CASE("a reader refuses a record above the maximum length that is fully written")
{
    two_sides s;
    s.set_length(0, capacity / 4 + 4);
    s.control.written = capacity / 2;
    CHECK(s.reader.read(s.got).error() == errc::worker_corrupted);
}

TEST_CASE("a writer refuses an impossible position permanently")
{
    const auto large = record_of(capacity / 4, 0);
    for (const std::uint64_t position :
         {std::uint64_t(4), ~std::uint64_t(0), std::uint64_t(3 * 1032 + 8), std::uint64_t(1) << 63}) {
        CAPTURE(position);
        two_sides s;
        for (int i = 0; i < 3; ++i)
            s.write(large.size());
        s.control.taken = position;
        CHECK(s.writer.write(large) == written::corrupted);
        s.control.taken = 0;
        CHECK(s.writer.write(record_of(1, 0)) == written::corrupted);
    }
}

TEST_CASE("a writer refuses a reader position that goes backwards")
{
    two_sides s;
    const auto large = record_of(capacity / 4, 0);
    for (int i = 0; i < 8; ++i) {
        s.write(large.size());
        REQUIRE(s.reader.read(s.got).value());
    }
    s.control.taken = 0;
    auto answer = written::yes;
    for (int i = 0; i < 8 && answer == written::yes; ++i)
        answer = s.writer.write(large);
    CHECK(answer == written::corrupted);
}

TEST_CASE("a million records pass between two threads")
{
    two_sides s;
    constexpr std::uint64_t count = 1'000'000;
    std::thread producer([&] {
        lengths sizes(s.writer.max_record());
        std::vector<std::byte> record;
        for (std::uint64_t i = 0; i < count; ++i) {
            record.assign(sizes.next(), static_cast<std::byte>(i));
            while (s.writer.write(record) == written::full)
                std::this_thread::yield();
        }
    });
    lengths sizes(s.reader.max_record());
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count;) {
        const auto more = s.reader.read(s.got);
        if (!more) {
            ++wrong;
            break;
        }
        if (!more.value()) {
            std::this_thread::yield();
            continue;
        }
        const auto same = [&](std::byte b) { return b == static_cast<std::byte>(i); };
        wrong += s.got.size() != sizes.next() || !std::ranges::all_of(s.got, same);
        ++i;
    }
    producer.join();
    CHECK(wrong == 0);
    CHECK_FALSE(s.reader.read(s.got).value());
}

TEST_CASE("no wake-up is missed when both sides sleep at every turn")
{
    // Ping-pong: each side writes one record and sleeps until the reply arrives.
    constexpr int rounds = 20'000;
    two_sides there;
    two_sides back;
    auto there_bell = doorbell::create().value();
    auto back_bell = doorbell::create().value();
    const auto send = [](ring_writer& writer, doorbell& bell) {
        const bool ok = writer.write(record_of(8, 1)) == written::yes;
        if (writer.wants_bell())
            bell.ring();
        return ok;
    };
    const auto receive = [](two_sides& from, doorbell& bell) {
        while (!from.reader.read(from.got).value()) {
            if (!from.reader.may_sleep())
                continue;
            if (!bell.wait(60s))
                return false;
            from.reader.awake();
        }
        return true;
    };
    int echoed = 0;
    std::thread other([&] {
        while (echoed < rounds && receive(there, there_bell) && send(back.writer, back_bell))
            ++echoed;
    });
    int done = 0;
    while (done < rounds && send(there.writer, there_bell) && receive(back, back_bell))
        ++done;
    other.join();
    CHECK(done == rounds);
    CHECK(echoed == rounds);
}

TEST_SUITE_END();

} // namespace test_worker_ring
