#ifndef COACCEL_CUDA_MEMORY_STAGED_COPY_HPP
#define COACCEL_CUDA_MEMORY_STAGED_COPY_HPP

#include "cuda/driver/driver_threads.hpp"
#include "cuda/memory/pinned_pool.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace coaccel::cuda {

/// The parts of a context that copies use.
struct copy_setting {
    const driver_api& api;
    driver_threads& helpers;
    pinned_pool& staging;
    /// Number of threads that access the callers' memory.
    std::atomic<int>& busy_with_callers;
    std::function<error_code(CUresult)> check;
    std::function<void()> notify_progress;
    /// Whether the context is dead or being aborted.
    std::function<bool()> given_up;
};

/// One copy between device and host, as requested by an op.
struct host_copy {
    enum class direction : std::uint8_t { to_device, to_host };

    direction way = direction::to_device;
    CUdeviceptr device = 0;
    /// Null: the data goes to the sink.
    void* host = nullptr;
    std::size_t bytes = 0;
    detail::collector sink{};
};

/// Copies between the device and the callers' memory. The device copies page-locked memory directly. Other memory goes
/// through the pinned pool: small copies on the executor, large ones in chunks on the thread pool, where the threads
/// copy some chunks while the device copies others.
///
/// Use from one thread at a time, with the context current. Owns the state of its ops, even if they are never finished.
class staged_copies {
public:
    /// Up to this size the executor copies itself, which takes a few microseconds.
    static constexpr std::size_t small_copy = std::size_t(64) << 10;
    static constexpr std::size_t chunk_bytes = std::size_t(1) << 20;

    explicit staged_copies(copy_setting setting);
    staged_copies(const staged_copies&) = delete;
    staged_copies& operator=(const staged_copies&) = delete;
    /// Preconditions: the thread pool has stopped.
    ~staged_copies();

    /// As op_entry::enqueue and op_entry::finish.
    result<progress> enqueue(CUstream s, bound_op& op, const host_copy& what);
    void finish(bound_op& op) noexcept;

    /// Whether kernels can use this memory of the host, at the address that the host uses. More than a copy needs.
    bool usable_by_kernels(const void* host, std::size_t bytes) const noexcept;

    /// Preconditions: the thread pool has stopped; the context is healthy and idle.
    void destroy() noexcept;

private:
    class copy;

    bool page_locked(const void* host, std::size_t bytes) const noexcept;
    copy* take();

    const copy_setting setting_;
    std::vector<std::unique_ptr<copy>> all_;
    std::vector<copy*> unused_;
};

} // namespace coaccel::cuda

#endif
