#include "mutator.hpp"
#include "posix/shared_memory.hpp"
#include "worker/transport/ring.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace test_worker_ring_fuzz {

namespace {

using namespace coaccel::detail;
using namespace coaccel::worker;
using coaccel::errc;
using test::fuzz_time;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t capacity = 4096;

struct tally {
    std::uint64_t records = 0;
    std::uint64_t corrupted_reads = 0;
    std::uint64_t corrupted_writes = 0;
    std::uint64_t wrong = 0;
};

class fuzzed_ring {
public:
    explicit fuzzed_ring(std::uint64_t seed) : random_(seed) {}

    void step(tally& seen)
    {
        switch (random_() % 8) {
        case 0:
        case 1:
        case 2: write(seen); break;
        case 3:
        case 4:
        case 5: read(seen); break;
        case 6: sleep_and_wake(); break;
        default:
            if (random_() % 4 == 0)
                mutate();
        }
    }

    bool spent() const noexcept { return reader_failed_ && writer_failed_; }

private:
    void write(tally& seen)
    {
        const auto length = random_() % 4 == 0 ? 1 + random_() % writer_.max_record() : 1 + random_() % 64;
        const std::vector<std::byte> record(length, static_cast<std::byte>(length));
        const auto answer = writer_.write(record);
        seen.wrong += writer_failed_ && answer != written::corrupted;
        seen.corrupted_writes += answer == written::corrupted && !writer_failed_;
        writer_failed_ = answer == written::corrupted;
    }

    void read(tally& seen)
    {
        const auto answer = reader_.read(got_);
        if (!answer) {
            seen.wrong += answer.error() != errc::worker_corrupted;
            seen.corrupted_reads += !reader_failed_;
            reader_failed_ = true;
            return;
        }
        seen.wrong += reader_failed_;
        if (answer.value()) {
            seen.wrong += got_.empty() || got_.size() > reader_.max_record();
            ++seen.records;
        }
    }

    void sleep_and_wake()
    {
        if (reader_.may_sleep() && random_() % 2 == 0)
            reader_.awake();
        (void)writer_.wants_bell();
    }

    void mutate()
    {
        auto& position = random_() % 2 == 0 ? control_.written : control_.taken;
        switch (random_() % 8) {
        case 0: position = random_(); break;
        case 1: position = position + 8 * (random_() % 64); break;
        case 2: position = position - 8 * (random_() % 64); break;
        case 3: position = position ^ (std::uint64_t(1) << random_() % 64); break;
        case 4: control_.sleeping = static_cast<std::uint32_t>(random_()); break;
        case 5: set_length(); break;
        case 6: data_[random_() % capacity] = static_cast<std::byte>(random_()); break;
        default:
            for (std::size_t i = 0; i < capacity; ++i)
                data_[i] = static_cast<std::byte>(random_());
        }
    }

    void set_length()
    {
        const auto wide = static_cast<std::uint32_t>(random_());
        const std::uint32_t length = random_() % 2 == 0 ? wide : wide % (capacity / 4 + 16);
        std::memcpy(data_.get() + random_() % (capacity / 8) * 8, &length, sizeof(length));
    }

    std::mt19937_64 random_;
    // An allocation of exactly the ring's size: the address sanitizer detects access beyond it.
    std::unique_ptr<std::byte[]> data_ = std::make_unique<std::byte[]>(capacity);
    ring_control control_;
    ring_writer writer_{control_, {data_.get(), capacity}};
    ring_reader reader_{control_, {data_.get(), capacity}};
    std::vector<std::byte> got_;
    bool reader_failed_ = false;
    bool writer_failed_ = false;
};

/// Overwrites the area until the process is killed.
[[noreturn]] void scribble(std::span<std::byte> area, ring_control& control)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::minstd_rand random(1);
    auto* const bytes = reinterpret_cast<volatile std::uint8_t*>(area.data());
    for (;;) {
        bytes[random() % capacity] = static_cast<std::uint8_t>(random());
        auto* const lengths = reinterpret_cast<volatile std::uint32_t*>(area.data());
        lengths[random() % (capacity / 8) * 2] = random() % 2 == 0 ? 1 + random() % 40 : ~std::uint32_t(0);
        control.written.store(control.taken + 8 * (random() % 64), std::memory_order_relaxed);
    }
}

} // namespace

TEST_SUITE_BEGIN("ring_fuzz");

TEST_CASE("random bytes between operations cause only typed errors")
{
    const auto end = clock_type::now() + fuzz_time(1);
    tally seen;
    std::uint64_t seed = 1;
    for (; clock_type::now() < end; ++seed) {
        fuzzed_ring ring(seed);
        for (int i = 0; i < 4000 && !ring.spent(); ++i)
            ring.step(seen);
        INFO("seed ", seed);
        REQUIRE(seen.wrong == 0);
    }
    MESSAGE("rings ", seed - 1, ", records ", seen.records, ", refused reads ", seen.corrupted_reads,
            ", refused writes ", seen.corrupted_writes);
    CHECK(seen.records > 0);
    CHECK(seen.corrupted_reads > 0);
    CHECK(seen.corrupted_writes > 0);
}

TEST_CASE("a process that overwrites the ring during reads does no harm")
{
    auto area = shared_memory::create(2 * capacity, "fuzz").value();
    auto* const control = new (area.bytes().data() + capacity) ring_control;
    const auto data = area.bytes().first(capacity);
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
        scribble(data, *control);

    const auto end = clock_type::now() + fuzz_time(4);
    std::uint64_t records = 0;
    std::uint64_t refused = 0;
    std::uint64_t wrong = 0;
    while (clock_type::now() < end) {
        control->taken = 0;
        control->written = 0;
        ring_reader reader(*control, data);
        std::vector<std::byte> got;
        for (int i = 0; i < 1000; ++i) {
            const auto answer = reader.read(got);
            if (!answer) {
                ++refused;
                wrong += answer.error() != errc::worker_corrupted;
                break;
            }
            records += answer.value();
            wrong += answer.value() && (got.empty() || got.size() > reader.max_record());
        }
    }
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(wrong == 0);
    CHECK(records > 0);
    CHECK(refused > 0);
}

TEST_SUITE_END();

} // namespace test_worker_ring_fuzz
