#ifndef COACCEL_CUDA_BACKEND_HPP
#define COACCEL_CUDA_BACKEND_HPP

#include "context/library_resources.hpp"
#include "cuda/driver/blocking_ops.hpp"
#include "cuda/driver/context_handle.hpp"
#include "cuda/driver/driver_threads.hpp"
#include "cuda/driver/event_pool.hpp"
#include "cuda/driver/stream_state.hpp"
#include "cuda/driver/watched_waits.hpp"
#include "cuda/jit/module_cache.hpp"
#include "cuda/loader/library_tables.hpp"
#include "cuda/memory/device_memory.hpp"
#include "cuda/memory/exportable_memory.hpp"
#include "cuda/memory/pinned_pool.hpp"
#include "cuda/memory/staged_copy.hpp"
#include "cuda/op_libraries.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/core/detail/adopt_op.hpp>
#include <coaccel/cuda/cuda_options.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace coaccel::cuda {

/// An NVIDIA GPU through its driver: the primary context, which other backends and other code in the process share,
/// with non-blocking streams, pooled events and memory of its own.
///
/// Once the context is known to be dead, no new driver call is made for it.
class backend {
public:
    static constexpr std::string_view name = "cuda";
    /// A sticky error invalidates every present and future context of the process.
    static constexpr bool replaceable = false;
    static constexpr bool releases_in_stream_order = true;
    /// A launch blocks in the driver once about 1,024 commands are queued.
    static constexpr std::size_t most_commands_on_stream = 640;

    /// After so many reads of a completion word the driver is asked.
    static constexpr std::uint32_t misses_per_driver_call = 64;

    struct options : cuda_options {
        int ordinal = 0;
        /// Whether threads will block on events.
        bool blocking_events = false;
        library_tables libraries{};
    };

    class stream {
    public:
        explicit stream(stream_state& state) noexcept : state_(&state) {}

        stream_state& state() const noexcept { return *state_; }

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
    /// Call this before other commands follow on the stream of the event: an event in whose place a word was used is
    /// recorded while the stream ends there. Later it would also wait for those commands.
    error_code settle(event& e) noexcept;
    error_code wait(stream& s, event& e) noexcept;
    result<progress> query(event& e) noexcept;
    error_code synchronize(event& e) noexcept;
    error_code notify(event& e, notification n) noexcept;

    result<void*> allocate(stream& s, std::size_t bytes, memory_kind kind);
    void release(stream& s, void* memory, std::size_t bytes, memory_kind kind) noexcept;
    bool can_export() const noexcept { return exportable_.available(); }
    result<detail::unique_fd> export_memory(void* memory, std::size_t bytes, memory_access access);
    result<void*> import_memory(detail::unique_fd descriptor, std::size_t bytes, memory_access access);
    std::shared_ptr<detail::pinned_memory> pinned() noexcept { return pinned_; }
    error_code pin(std::span<std::byte> memory);
    /// Refuses memory of other code that the ops cannot use. Defined in memory/check_memory.cpp.
    error_code check_memory(const detail::adopt_op& op);
    memory_info memory() const noexcept;
    /// Fills only `used` and `high_water`, without a driver call.
    memory_info memory_use() const noexcept { return memory_.use(); }
    /// The upper limit for all buffers together.
    std::uint64_t memory_limit() const noexcept { return memory_.limit(); }

    const op_info* describe(std::uint64_t id) const noexcept { return table_.describe(id); }
    static void add_warm_up(op_list& ops, const ref<float>& scratch) { cuda::add_warm_up(ops, scratch); }
    error_code find_code(bound_op& op) const noexcept
    {
        op.code = table_.find(op.info->id);
        return op.code ? error_code() : make_error_code(errc::unsupported_op);
    }
    static std::size_t commands_of(const bound_op& op) noexcept
    {
        const auto commands = static_cast<const op_code*>(op.code)->commands;
        return commands ? commands(op) : 1;
    }
    result<readiness> prepare(stream& s, bound_op& op);
    error_code enqueue(stream& s, bound_op& op);
    error_code finish(bound_op& op) noexcept;

    error_code status() noexcept;
    void abort() noexcept;
    bool quiet() const noexcept { return helpers_.idle(); }
    /// See watched_waits::oldest.
    std::optional<watched_waits::time_point> waiting_since() const noexcept { return waits_.oldest(); }
    /// Whether work that hangs was abandoned: without a fault, nothing stops it, and it may still use memory.
    bool work_remains() const noexcept
    {
        return dead() && sticky_error_.load(std::memory_order_acquire) == CUDA_SUCCESS;
    }
    static fault classify(const error_code& ec) noexcept;

    // Used by the ops.
    const driver_api& api() const noexcept { return api_; }
    const cuda_options& how() const noexcept { return options_; }
    const library_tables& libraries() const noexcept { return options_.libraries; }
    int compute_capability() const noexcept { return hardware_.compute_capability; }
    CUdevice device() const noexcept { return context_.device(); }
    /// Makes our context current again after foreign code, which may have made another one current.
    void make_current() const noexcept;
    driver_threads& helpers() noexcept { return helpers_; }
    pinned_pool& staging() noexcept { return *pinned_; }
    device_memory& buffers() noexcept { return memory_; }
    module_cache& modules() noexcept { return modules_; }
    staged_copies& copies() noexcept { return copies_; }
    /// For driver calls that may block.
    blocking_ops& blocking() noexcept { return blocking_; }
    watched_waits& waits() noexcept { return waits_; }
    /// The resources of libraries that all lanes share.
    detail::resource_set& resources() noexcept { return resources_; }

    /// Tells the listener that a pending op may proceed. May be called from any thread.
    void notify_progress() noexcept;

    /// Converts a driver result into an error. A sticky error marks the context as dead.
    error_code check(CUresult r) noexcept;
    bool dead() const noexcept { return dead_.load(std::memory_order_acquire); }
    /// True after `abort` or a sticky error: jobs on the thread pool then give up at their next check.
    bool aborted() const noexcept { return aborted_.load(std::memory_order_seq_cst); }

    /// Number of pool threads that access the callers' memory. status() reports a dead context only when this is zero.
    std::atomic<int> busy_with_callers{0};

private:
    error_code set_up();
    error_code record_now(event& e) noexcept;
    error_code make_native_stream(CUstream& s, priority p) noexcept;
    result<int> attribute(CUdevice_attribute a) noexcept;
    /// Waits for our own streams: work of others in the context may never end.
    void synchronize_streams() noexcept;
    void tear_down() noexcept;
    error_code sticky_error() const noexcept;

    options options_;
    const driver_api& api_;
    context_handle context_;
    hardware_info hardware_;
    int least_priority_ = 0;
    int greatest_priority_ = 0;
    const op_table& table_;

    std::atomic<bool> dead_{false};
    std::atomic<bool> aborted_{false};
    std::atomic<CUresult> sticky_error_{CUDA_SUCCESS};
    std::chrono::steady_clock::time_point dead_since_{};
    mutable std::mutex listener_mutex_;
    notification listener_;

    // Before the threads that wait.
    watched_waits waits_;
    driver_threads helpers_;
    std::shared_ptr<pinned_pool> pinned_;
    event_pool events_;
    device_memory memory_;
    exportable_memory exportable_;
    module_cache modules_;
    staged_copies copies_;
    blocking_ops blocking_;
    detail::resource_set resources_;
    CUmemoryPool pool_ = nullptr;
    /// Neither carries user work: `probe_` tests whether the context is alive, `growth_` grows the memory pool.
    CUstream probe_ = nullptr;
    CUstream growth_ = nullptr;
    /// The stream of the allocations, which carries no other work.
    CUstream allocations_ = nullptr;
    std::vector<std::unique_ptr<stream_state>> streams_;
    /// The callers' memory that is registered with the driver.
    std::vector<void*> registered_;
};

} // namespace coaccel::cuda

#endif
