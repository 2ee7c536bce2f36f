#ifndef COACCEL_HOST_FAULT_INJECTOR_HPP
#define COACCEL_HOST_FAULT_INJECTOR_HPP

#include <coaccel/core/config.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace coaccel {

/// Faults the host backend plays. Ops are counted from 1; zero means never.
struct host_faults {
    /// The n-th op kills its context, as an illegal address kills a CUDA context.
    std::uint64_t poison_at = 0;
    /// Every n-th op kills its context.
    std::uint64_t poison_every = 0;
    /// The n-th op never ends, until its context is condemned.
    std::uint64_t hang_at = 0;
    /// Allocations fail beyond this many bytes in use.
    std::uint64_t out_of_memory_at = 0;
    /// The first k attempts to start a context fail.
    std::uint64_t refuse_starts = 0;
    /// Added to the time of every op.
    std::chrono::nanoseconds delay{0};
};

/// Decides which op fails and how. Thread-safe; shared by all generations of a device.
class COACCEL_DECL fault_injector {
public:
    /// What becomes of an op.
    enum class verdict : std::uint8_t { run, poison, hang };

    /// Plays what the plan says.
    explicit fault_injector(const host_faults& plan = {}) noexcept : plan_(plan), refusals_(plan.refuse_starts) {}

    /// The next op that is run kills its context.
    void poison() noexcept { poison_.store(true, std::memory_order_relaxed); }

    /// The next op that is run hangs; with host_mode::in_turn, where that would hold up the executor, it poisons.
    void hang() noexcept { hang_.store(true, std::memory_order_relaxed); }

    /// The next n attempts to start a context fail.
    void refuse_starts(std::uint64_t n) noexcept { refusals_.store(n, std::memory_order_relaxed); }

    /// Faults played so far, refused starts aside.
    std::uint64_t played() const noexcept { return played_.load(std::memory_order_relaxed); }

    /// What it was made with.
    const host_faults& plan() const noexcept { return plan_; }

    // Asked by the backend.
    verdict next_op() noexcept;    ///< What becomes of the next op.
    bool refuses_start() noexcept; ///< Whether the next context refuses to start.
    /// Whether an allocation fails.
    bool out_of_memory(std::uint64_t bytes_in_use) const noexcept
    {
        return plan_.out_of_memory_at != 0 && bytes_in_use > plan_.out_of_memory_at;
    }
    std::chrono::nanoseconds delay() const noexcept { return plan_.delay; } ///< How much longer each op takes.
    /// Whether an op may block its thread.
    bool blocks() const noexcept { return plan_.hang_at != 0 || plan_.delay > std::chrono::nanoseconds(0); }

private:
    const host_faults plan_;
    std::atomic<std::uint64_t> ops_{0};
    std::atomic<std::uint64_t> played_{0};
    std::atomic<std::uint64_t> refusals_;
    std::atomic<bool> poison_{false};
    std::atomic<bool> hang_{false};
};

} // namespace coaccel

#endif
