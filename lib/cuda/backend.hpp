#ifndef COACCEL_CUDA_BACKEND_HPP
#define COACCEL_CUDA_BACKEND_HPP

#include "cuda/backstage.hpp"
#include "cuda/context_handle.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/errands.hpp"
#include "cuda/event_pool.hpp"
#include "cuda/jit/module_cache.hpp"
#include "cuda/load/cublas_api.hpp"
#include "cuda/op_table.hpp"
#include "cuda/pinned_pool.hpp"
#include "cuda/staged_copy.hpp"
#include "cuda/stream_state.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/cuda/cuda_options.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace coaccel::cuda {

/// An NVIDIA GPU through its driver: a context of its own, non-blocking streams, pooled events and memory.
///
/// Once the context is known to be dead, no call of the driver is made for it again, but for those under way.
class backend {
public:
    static constexpr std::string_view name = "cuda";
    /// A sticky fault poisons every context the process has or will ever have.
    static constexpr bool replaceable = false;
    static constexpr bool releases_in_stream_order = true;
    /// The driver blocks in a launch when about 1,024 others wait; an op may be two of them.
    static constexpr std::size_t most_commands_on_stream = 640;

    struct options : cuda_options {
        int ordinal = 0;
        /// Whether threads will block on events.
        bool blocking_events = false;
        /// Null: those of this machine.
        const driver_api* driver = nullptr;
        const cublas_api* cublas = nullptr;
    };

    class stream {
    public:
        explicit stream(stream_state& state) noexcept : state_(&state) {}

    private:
        friend class backend;
        stream_state* state_;
    };

    using event = pooled_event;

    static result<std::unique_ptr<backend>> create(const options& o);
    static bool creation_blocks(const options&) noexcept { return true; }

    backend(const options& o, const driver_api& api, context_handle context);
    backend(const backend&) = delete;
    backend& operator=(const backend&) = delete;
    ~backend();

    context_handle::scope enter() noexcept { return context_.enter(dead()); }
    void listen(notification n) noexcept;
    hardware_info hardware() const { return hardware_; }

    result<stream> make_stream(priority p);

    error_code record(event& e, stream& s) noexcept;
    error_code wait(stream& s, event& e) noexcept;
    result<progress> query(event& e) noexcept;
    error_code synchronize(event& e) noexcept;
    error_code notify(event& e, notification n) noexcept;

    result<void*> allocate(stream& s, std::size_t bytes, memory_kind kind);
    void release(stream& s, void* memory, std::size_t bytes, memory_kind kind) noexcept;
    std::shared_ptr<detail::pinned_memory> pinned() noexcept { return pinned_; }
    error_code pin(std::span<std::byte> memory);
    memory_info memory() const noexcept;
    /// Only `used` and `high_water` of it, without a call of the driver.
    memory_info memory_use() const noexcept { return memory_.use(); }
    /// The most that buffers may take up together.
    std::uint64_t memory_limit() const noexcept { return memory_.limit(); }

    bool supports(const op_info& info) const noexcept { return table_.find(info.id) != nullptr; }
    const op_info* describe(std::uint64_t id) const noexcept
    {
        const op_entry* entry = table_.find(id);
        return entry ? entry->info : nullptr;
    }
    result<progress> enqueue(stream& s, bound_op& op);
    error_code finish(bound_op& op) noexcept;

    error_code status() noexcept;
    void abort() noexcept;
    bool quiet() const noexcept { return backstage_.quiet(); }
    static fault classify(const error_code& ec) noexcept;

    // For the ops.
    const driver_api& api() const noexcept { return api_; }
    const cuda_options& how() const noexcept { return options_; }
    const cublas_api* given_cublas() const noexcept { return options_.cublas; }
    int compute_capability() const noexcept { return hardware_.compute_capability; }
    CUdevice device() const noexcept { return context_.device(); }
    /// Again, after code of somebody else's, which may have chosen another context.
    void make_current() const noexcept;
    class backstage& helpers() noexcept { return backstage_; }
    pinned_pool& staging() noexcept { return *pinned_; }
    device_memory& buffers() noexcept { return memory_; }
    module_cache& modules() noexcept { return modules_; }
    staged_copies& copies() noexcept { return copies_; }
    /// For calls of the driver that may take their time.
    errands& aside() noexcept { return aside_; }

    /// Tells the listener that something pending may go on. From any thread.
    void nudge() noexcept;

    /// Turns what the driver said into an error, and remembers when it means that the context is dead.
    error_code check(CUresult r) noexcept;
    bool dead() const noexcept { return dead_.load(std::memory_order_acquire); }
    /// Set from `abort` on: who works on the backstage gives up at the next occasion.
    bool aborted() const noexcept { return aborted_.load(std::memory_order_seq_cst); }

    /// Counts threads of the backstage that use memory of the callers; the verdict on a dead context waits for them.
    std::atomic<int> busy_with_callers{0};

private:
    error_code set_up();
    error_code make_native_stream(CUstream& s, priority p) noexcept;
    result<int> attribute(CUdevice_attribute a) noexcept;
    void tear_down() noexcept;
    error_code verdict() const noexcept;

    options options_;
    const driver_api& api_;
    context_handle context_;
    hardware_info hardware_;
    int least_priority_ = 0;
    int greatest_priority_ = 0;
    const op_table& table_;

    std::atomic<bool> dead_{false};
    std::atomic<bool> aborted_{false};
    std::atomic<CUresult> verdict_{CUDA_SUCCESS};
    std::chrono::steady_clock::time_point dead_since_{};
    mutable std::mutex listener_mutex_;
    notification listener_;

    class backstage backstage_;
    std::shared_ptr<pinned_pool> pinned_;
    event_pool events_;
    device_memory memory_;
    module_cache modules_;
    staged_copies copies_;
    errands aside_;
    CUmemoryPool pool_ = nullptr;
    /// Never has work on it: to ask whether the context lives, and to grow the pool.
    CUstream probe_ = nullptr;
    CUstream growth_ = nullptr;
    /// The stream of the allocations, which has no other work.
    CUstream allocations_ = nullptr;
    std::vector<std::unique_ptr<stream_state>> streams_;
    /// Memory of others that is registered.
    std::vector<void*> registered_;
};

} // namespace coaccel::cuda

#endif
