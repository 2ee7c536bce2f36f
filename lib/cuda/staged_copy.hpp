#ifndef COACCEL_CUDA_STAGED_COPY_HPP
#define COACCEL_CUDA_STAGED_COPY_HPP

#include "cuda/backstage.hpp"
#include "cuda/pinned_pool.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/detail/transfer_ops.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace coaccel::cuda {

/// What copies need of the context they run in.
struct copy_setting {
    const driver_api& api;
    backstage& helpers;
    pinned_pool& staging;
    /// Counts the threads that are in the callers' memory.
    std::atomic<int>& busy_with_callers;
    std::function<error_code(CUresult)> check;
    std::function<void()> nudge;
    /// Whether the context is dead or about to be.
    std::function<bool()> given_up;
};

/// One copy between the device and the host, as an op asks for it.
struct host_copy {
    enum class direction : std::uint8_t { to_device, to_host };

    direction way = direction::to_device;
    CUdeviceptr device = 0;
    /// Null: the sink takes the data.
    void* host = nullptr;
    std::size_t bytes = 0;
    detail::collector sink{};
};

/// Copies between the device and memory of the callers. From and to page-locked memory the device copies by itself.
/// Other memory goes through the pinned pool: a little of it on the executor, much of it in chunks on the backstage,
/// where the threads copy some chunks while the device copies others.
///
/// For one thread at a time, under the context. Owns what its ops hold, also when they are never finished.
class staged_copies {
public:
    /// Up to here the executor copies, which takes a few microseconds.
    static constexpr std::size_t small_copy = std::size_t(64) << 10;
    static constexpr std::size_t chunk_bytes = std::size_t(1) << 20;

    explicit staged_copies(copy_setting setting);
    staged_copies(const staged_copies&) = delete;
    staged_copies& operator=(const staged_copies&) = delete;
    /// The backstage has stopped.
    ~staged_copies();

    /// As op_entry::enqueue and op_entry::finish.
    result<progress> enqueue(CUstream s, bound_op& op, const host_copy& what);
    void finish(bound_op& op) noexcept;

    /// The backstage has stopped and the context is healthy and idle.
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
