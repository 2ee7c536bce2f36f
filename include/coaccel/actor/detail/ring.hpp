#ifndef COACCEL_ACTOR_DETAIL_RING_HPP
#define COACCEL_ACTOR_DETAIL_RING_HPP

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>

namespace coaccel::detail {

// Fixed, so that the layout does not depend on compiler tuning flags.
inline constexpr std::size_t cache_line = 64;

enum class push_result {
    accepted,
    /// Accepted, and the caller must wake the consumer.
    accepted_wake,
    full,
    closed,
};

/// Bounded lock-free queue: many producers, one consumer at a time.
///
/// A producer claims a position by advancing `tail_` and publishes by storing the cell's stamp; `head_` bounds the
/// claims, so a claimed cell is free. `tail_` also holds the closed bit and the asleep bit of the consumer: closing,
/// falling asleep and claiming have one total order, and a producer learns all it needs from the word it changes.
template <class M>
class ring {
public:
    explicit ring(std::size_t capacity)
        : capacity_(capacity), mask_(std::bit_ceil(capacity) - 1), cells_(std::make_unique<cell[]>(mask_ + 1))
    {}

    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() { clear(); }

    std::size_t capacity() const noexcept { return capacity_; }

    std::size_t size() const noexcept
    {
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        const std::uint64_t tail = tail_.load(std::memory_order_acquire) & position;
        return tail > head ? static_cast<std::size_t>(tail - head) : 0;
    }

    bool closed() const noexcept { return (tail_.load(std::memory_order_acquire) & closed_bit) != 0; }
    void close() noexcept { tail_.fetch_or(closed_bit, std::memory_order_seq_cst); }
    void reopen() noexcept { tail_.fetch_and(~closed_bit, std::memory_order_seq_cst); }

    /// Moves from `message` only when it is accepted.
    push_result push(M& message) noexcept
    {
        std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        for (;;) {
            if (tail & closed_bit)
                return push_result::closed;
            const std::uint64_t at = tail & position;
            if (at - head_seen_.load(std::memory_order_acquire) >= capacity_) {
                // Sequentially consistent: one half of the handshake with a consumer that checks for waiting senders.
                const std::uint64_t head = head_.load(std::memory_order_seq_cst);
                if (at - head >= capacity_) {
                    const std::uint64_t again = tail_.load(std::memory_order_relaxed);
                    if (again == tail)
                        return push_result::full;
                    tail = again;
                    continue;
                }
                head_seen_.store(head, std::memory_order_release);
            }
            if (tail_.compare_exchange_weak(tail, at + 1, std::memory_order_relaxed)) {
                cell& c = cells_[at & mask_];
                ::new (static_cast<void*>(c.storage)) M(std::move(message));
                c.stamp.store(at + 1, std::memory_order_release);
                return tail & asleep_bit ? push_result::accepted_wake : push_result::accepted;
            }
        }
    }

    // The functions below are for the consumer only.

    bool ready() const noexcept
    {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        return cells_[head & mask_].stamp.load(std::memory_order_acquire) == head + 1;
    }

    /// Sets the asleep bit of an empty ring, so that the next push returns accepted_wake. Returns false when the ring
    /// is not empty, or closed and drained. A bit that is no longer needed may stay set.
    bool sleep() noexcept
    {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        std::uint64_t tail = tail_.load(std::memory_order_acquire);
        for (;;) {
            if ((tail & position) != head) {
                if (ready())
                    return false;
                // A producer is between claim and publication, which are a few instructions apart.
                std::this_thread::yield();
                tail = tail_.load(std::memory_order_acquire);
            } else if (tail & closed_bit) {
                return false;
            } else if (tail_.compare_exchange_weak(tail, tail | asleep_bit, std::memory_order_acq_rel,
                                                   std::memory_order_acquire)) {
                return true;
            }
        }
    }

    /// True when closed and every accepted message has been taken.
    bool drained() const noexcept
    {
        return (tail_.load(std::memory_order_acquire) & ~asleep_bit) ==
               (head_.load(std::memory_order_relaxed) | closed_bit);
    }

    /// Passes up to `max` messages to `sink` as rvalues; frees their room once, at the end.
    template <class Sink>
    std::size_t pop(std::size_t max, Sink&& sink)
    {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        advance guard{head_, head, head};
        while (guard.next - head < max) {
            cell& c = cells_[guard.next & mask_];
            if (c.stamp.load(std::memory_order_acquire) != guard.next + 1)
                break;
            M* message = std::launder(reinterpret_cast<M*>(c.storage));
            struct destroy {
                M* m;
                ~destroy() { m->~M(); }
            } end{message};
            ++guard.next;
            sink(std::move(*message));
        }
        return static_cast<std::size_t>(guard.next - head);
    }

    /// Closes, and destroys the remaining messages.
    void clear() noexcept
    {
        close();
        while (!drained())
            if (pop(capacity_, [](M&&) {}) == 0)
                std::this_thread::yield(); // a producer is between claim and publication
    }

private:
    static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;
    static constexpr std::uint64_t asleep_bit = std::uint64_t{1} << 62;
    static constexpr std::uint64_t position = asleep_bit - 1;

    struct cell {
        std::atomic<std::uint64_t> stamp{0};
        alignas(M) std::byte storage[sizeof(M)];
    };

    // Frees the cell of a message even when the sink throws.
    struct advance {
        std::atomic<std::uint64_t>& head;
        const std::uint64_t from;
        std::uint64_t next;

        ~advance()
        {
            if (next != from)
                head.store(next, std::memory_order_seq_cst);
        }
    };

    const std::size_t capacity_;
    const std::uint64_t mask_;
    const std::unique_ptr<cell[]> cells_;
    alignas(cache_line) std::atomic<std::uint64_t> tail_{0};
    // A lower bound of head_ shared by the producers, so that they rarely touch the consumer's cache line.
    std::atomic<std::uint64_t> head_seen_{0};
    alignas(cache_line) std::atomic<std::uint64_t> head_{0};
};

} // namespace coaccel::detail

#endif
