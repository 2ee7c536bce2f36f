#ifndef COACCEL_WORKER_TRANSPORT_RING_HPP
#define COACCEL_WORKER_TRANSPORT_RING_HPP

#include <coaccel/core/result.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace coaccel::worker {

/// The shared state of the two sides of a ring; zero at the start. Positions count bytes since the start. Each member
/// has its own cache line.
struct ring_control {
    alignas(64) std::atomic<std::uint64_t> written{0};
    alignas(64) std::atomic<std::uint64_t> taken{0};
    alignas(64) std::atomic<std::uint32_t> sleeping{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(ring_control) == 192);

enum class written : std::uint8_t { yes, full, corrupted };

/// The longest record of a ring of `capacity` bytes.
constexpr std::size_t max_ring_record(std::size_t capacity) noexcept
{
    return capacity / 4;
}

/// The producer's side of a ring of records, for one thread at a time. Trusts nothing that the reader's process writes.
class COACCEL_DECL ring_writer {
public:
    /// Preconditions: the size of `data` is a power of two, at least 4096, and it is aligned to 8 bytes.
    ring_writer(ring_control& control, std::span<std::byte> data) noexcept;

    std::size_t max_record() const noexcept { return max_ring_record(data_.size()); }

    /// Copies the record, or leaves the ring unchanged. Once it has returned `corrupted`, every later call does.
    /// Preconditions: 1 to max_record() bytes.
    [[nodiscard]] written write(std::span<const std::byte> record) noexcept;

    /// Call after a write: returns whether the reader sleeps and must be woken. True once for each sleep.
    [[nodiscard]] bool wants_bell() noexcept;

private:
    ring_control* control_;
    std::span<std::byte> data_;
    std::uint64_t written_ = 0;
    std::uint64_t seen_taken_ = 0;
    bool corrupted_ = false;
};

/// The consumer's side, for one thread at a time. Trusts nothing that the writer's process writes.
class COACCEL_DECL ring_reader {
public:
    /// Preconditions: as for the writer.
    ring_reader(ring_control& control, std::span<const std::byte> data) noexcept;

    std::size_t max_record() const noexcept { return max_ring_record(data_.size()); }

    /// Copies the next record into `into`, whose capacity is kept; false if there is none.
    /// errc::worker_corrupted, from then on permanently, if the writer's data is invalid.
    result<bool> read(std::vector<std::byte>& into);

    /// Whether there is a record, according to the writer's position, which is not checked.
    bool has_record() const noexcept { return control_->written.load(std::memory_order_acquire) != taken_; }

    /// Announces that this side sleeps, so that the writer's next wants_bell() is true. Returns false and announces
    /// nothing if there is a record to read.
    [[nodiscard]] bool may_sleep() noexcept;

    /// Withdraws the announcement of may_sleep().
    void awake() noexcept;

private:
    error_code condemn(const char* why);

    ring_control* control_;
    std::span<const std::byte> data_;
    std::uint64_t taken_ = 0;
    std::uint64_t seen_written_ = 0;
    error_code corrupted_;
};

/// Called in a polling loop. With few cores the peer may need this core, so the thread yields after 5 µs; a message
/// that arrives earlier is not worth a system call.
inline void give_way(std::chrono::nanoseconds looked_for) noexcept
{
    if (looked_for > std::chrono::microseconds(5))
        std::this_thread::yield();
}

} // namespace coaccel::worker

#endif
