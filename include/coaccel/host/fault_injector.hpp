#ifndef COACCEL_HOST_FAULT_INJECTOR_HPP
#define COACCEL_HOST_FAULT_INJECTOR_HPP

#include <coaccel/core/config.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace coaccel {

/// Faults that the host backend injects. Ops are counted from 1; zero means never.
struct host_faults {
    /// The n-th op kills its context, as an illegal address kills a CUDA context.
    std::uint64_t poison_at = 0;
    /// Every n-th op kills its context.
    std::uint64_t poison_every = 0;
    /// The n-th op hangs until its context is killed.
    std::uint64_t hang_at = 0;
    /// Allocations fail beyond this many bytes in use.
    std::uint64_t out_of_memory_at = 0;
    /// The first k attempts to start a context fail.
    std::uint64_t refuse_starts = 0;
    /// Added to the duration of every op.
    std::chrono::nanoseconds delay{0};
};

/// Decides which op fails and how. Thread-safe; shared by all generations of a device.
///
/// Exceptions: no function throws.
class COACCEL_DECL fault_injector {
public:
    /// What happens to an op.
    enum class verdict : std::uint8_t { run, poison, hang };

    /// Injects the faults of the plan.
    explicit fault_injector(const host_faults& plan = {}) noexcept : plan_(plan), refusals_(plan.refuse_starts) {}

    /// The next op that runs kills its context.
    void poison() noexcept { poison_.store(true, std::memory_order_relaxed); }

    /// The next op that runs hangs. With host_mode::inline_, where that would block the executor, it kills its context.
    void hang() noexcept { hang_.store(true, std::memory_order_relaxed); }

    /// Until another name is given, loading a plan of this name kills its context, as an op does that faults when a GPU
    /// runs it for the first time. Empty: no plan. Without effect in workers.
    void poison_loads(std::string_view plan) noexcept;

    /// The next n attempts to start a context fail.
    void refuse_starts(std::uint64_t n) noexcept { refusals_.store(n, std::memory_order_relaxed); }

    /// The number of injected faults, without refused starts.
    std::uint64_t played() const noexcept { return played_.load(std::memory_order_relaxed); }

    /// The plan given to the constructor.
    const host_faults& plan() const noexcept { return plan_; }

    // Called by the backend.
    verdict next_op() noexcept;                              ///< What happens to the next op.
    bool refuses_start() noexcept;                           ///< Whether the next context fails to start.
    bool poisons_load(std::string_view plan) const noexcept; ///< Whether loading this plan kills its context.
    /// Whether an allocation fails.
    bool out_of_memory(std::uint64_t bytes_in_use) const noexcept
    {
        return plan_.out_of_memory_at != 0 && bytes_in_use > plan_.out_of_memory_at;
    }
    std::chrono::nanoseconds delay() const noexcept { return plan_.delay; } ///< Added to the duration of each op.
    /// Whether an op may block its thread.
    bool blocks() const noexcept { return plan_.hang_at != 0 || plan_.delay > std::chrono::nanoseconds(0); }

private:
    const host_faults plan_;
    std::atomic<std::uint64_t> ops_{0};
    std::atomic<std::uint64_t> played_{0};
    std::atomic<std::uint64_t> refusals_;
    std::atomic<bool> poison_{false};
    std::atomic<bool> hang_{false};
    /// The hash of the name; 0: no plan.
    std::atomic<std::size_t> poisoned_plan_{0};
};

} // namespace coaccel

#endif
