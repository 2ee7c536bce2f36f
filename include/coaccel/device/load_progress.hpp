#ifndef COACCEL_DEVICE_LOAD_PROGRESS_HPP
#define COACCEL_DEVICE_LOAD_PROGRESS_HPP

#include <atomic>
#include <cstdint>

namespace coaccel {

namespace detail {
struct load_progress_access;
}

/// How far the loading of a plan, or of the plans of a set, is. The caller of `device::async_load` owns it, names it in
/// `plan_options::progress`, and reads it whenever it wants to. The device only stores numbers in it and calls no
/// function of the caller, so there is no question of which thread or executor such a function runs on.
///
/// During a call the numbers only grow. After an error or a cancellation they stay as they were; the next call with the
/// same object begins with zeros.
///
/// Lifetimes: it must exist until the call has completed; the device does not use it afterwards.
/// Thread safety: any thread.
class load_progress {
public:
    load_progress() = default;
    load_progress(const load_progress&) = delete;
    load_progress& operator=(const load_progress&) = delete;

    /// The bytes of the constants that are on the device, including those that another plan had uploaded.
    std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// The bytes of all constants; zero until the device has accepted the call.
    std::uint64_t total_bytes() const noexcept { return total_bytes_.load(std::memory_order_relaxed); }
    /// How many instances have been made.
    int instances() const noexcept { return instances_.load(std::memory_order_relaxed); }
    /// How many are made before the call completes (`plan_options::initial` for each plan); zero until the device has
    /// accepted the call.
    int total_instances() const noexcept { return total_instances_.load(std::memory_order_relaxed); }

private:
    friend struct detail::load_progress_access;

    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::uint64_t> total_bytes_{0};
    std::atomic<int> instances_{0};
    std::atomic<int> total_instances_{0};
};

namespace detail {

/// For the device that loads the plan.
struct load_progress_access {
    static void begin(load_progress& p, std::uint64_t total_bytes, int total_instances) noexcept
    {
        p.bytes_.store(0, std::memory_order_relaxed);
        p.instances_.store(0, std::memory_order_relaxed);
        p.total_bytes_.store(total_bytes, std::memory_order_relaxed);
        p.total_instances_.store(total_instances, std::memory_order_relaxed);
    }
    static void add_bytes(load_progress& p, std::uint64_t more) noexcept
    {
        p.bytes_.fetch_add(more, std::memory_order_relaxed);
    }
    static void add_instances(load_progress& p, int more) noexcept
    {
        p.instances_.fetch_add(more, std::memory_order_relaxed);
    }
};

} // namespace detail
} // namespace coaccel

#endif
