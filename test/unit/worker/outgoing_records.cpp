#include "outgoing_ring.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace test_worker_outgoing_records {

namespace {

using namespace coaccel::worker;

struct fixture : test::outgoing_ring {
    fixture() : test::outgoing_ring(4096) {}

    void on_written() noexcept override { ++wake_ups; }
    void on_corrupted() noexcept override { ++corruptions; }

    /// Sends a record of this size that contains the number.
    void post(std::uint64_t number, std::size_t size = 8)
    {
        encoder& e = out.begin();
        e.put(number);
        e.put_bytes(std::vector<std::byte>(size - 8));
        out.post();
    }

    /// Sends the largest records until one has to wait. Returns how many were written.
    std::uint64_t fill()
    {
        std::uint64_t n = 0;
        for (; !out.waiting(); ++n)
            post(n, out.max_size());
        return n - 1;
    }

    /// The number in the next record; nothing if there is none.
    std::optional<std::uint64_t> take()
    {
        if (!read())
            return std::nullopt;
        decoder in(record);
        std::uint64_t number = 0;
        CHECK(in.get(number));
        return number;
    }

    int wake_ups = 0;
    int corruptions = 0;
};

} // namespace

TEST_SUITE_BEGIN("outgoing_records");

TEST_CASE_FIXTURE(fixture, "a record is written at once, and the worker is woken for it")
{
    post(1);
    post(2);
    CHECK(wake_ups == 2);
    CHECK_FALSE(out.waiting());
    CHECK_FALSE(out.flush());
    CHECK(wake_ups == 2);
    CHECK(take() == 1);
    CHECK(take() == 2);
    CHECK_FALSE(take());
}

TEST_CASE_FIXTURE(fixture, "the size of a record is known before it is sent")
{
    CHECK(out.max_size() == max_ring_record(capacity));
    encoder& e = out.begin();
    e.put_bytes(std::vector<std::byte>(out.max_size()));
    CHECK(out.fits());
    e.put(std::uint8_t(1));
    CHECK(out.size() == out.max_size() + 1);
    CHECK_FALSE(out.fits());
    CHECK(out.begin().record().empty());
}

TEST_CASE_FIXTURE(fixture, "records that find the ring full are written later, in order")
{
    const auto written = fill();
    CHECK(wake_ups == int(written));
    // There is room for a small record, but it must not overtake the one that waits.
    post(100);
    post(101);
    CHECK_FALSE(out.flush());
    CHECK(wake_ups == int(written));
    for (std::uint64_t i = 0; i < written; ++i)
        CHECK(take() == i);
    CHECK(out.flush());
    CHECK(wake_ups == int(written) + 1);
    CHECK_FALSE(out.waiting());
    CHECK(take() == written);
    CHECK(take() == 100);
    CHECK(take() == 101);
    post(102);
    CHECK(take() == 102);
}

TEST_CASE_FIXTURE(fixture, "a flush writes as many records as fit")
{
    const auto written = fill();
    for (std::uint64_t i = 0; i < 10; ++i)
        post(written + 1 + i, out.max_size());
    std::uint64_t next = 0;
    int flushes = 0;
    for (; out.waiting(); ++flushes) {
        CHECK(take() == next++);
        (void)out.flush();
    }
    CHECK(flushes > 5);
    while (const auto got = take())
        CHECK(*got == next++);
    CHECK(next == written + 11);
}

TEST_CASE_FIXTURE(fixture, "an invalid ring is reported, and nothing waits for it")
{
    control.taken = ~std::uint64_t(0) / 2;
    // The writer looks at the reader's position when it needs room.
    for (int i = 0; i < 10 && corruptions == 0; ++i)
        post(1, out.max_size());
    CHECK(corruptions == 1);
    CHECK_FALSE(out.waiting());
    const int before = wake_ups;
    post(2);
    CHECK(corruptions == 2);
    CHECK(wake_ups == before);
}

TEST_CASE_FIXTURE(fixture, "a flush into an invalid ring reports it, and counts as progress")
{
    (void)fill();
    const int before = wake_ups;
    control.taken = ~std::uint64_t(0) / 2;
    CHECK(out.flush());
    CHECK(corruptions == 1);
    CHECK(wake_ups == before);
}

TEST_SUITE_END();

} // namespace test_worker_outgoing_records
