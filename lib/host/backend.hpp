#ifndef COACCEL_HOST_BACKEND_HPP
#define COACCEL_HOST_BACKEND_HPP

#include "context/library_resources.hpp"
#include "host/exportable_memory.hpp"
#include "host/memory_pool.hpp"
#include "host/op_table.hpp"
#include "host/pinned_memory.hpp"
#include "host/stream.hpp"
#include "host/stream_runners.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/host/host_options.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace coaccel::host {

/// The CPU as an accelerator: streams on a thread pool, arithmetic with Eigen, and injected faults.
class backend {
public:
    static constexpr std::string_view name = "host";
    static constexpr bool replaceable = true;
    static constexpr bool runs_on_cpu = true;

    /// The caller's options, and the fault injector shared by all contexts made from them.
    struct options : host_options {
        options(const host_options& o) : host_options(o), own_injector(std::make_shared<fault_injector>(o.faults))
        {
            if (!injector)
                injector = own_injector.get();
        }

        std::shared_ptr<fault_injector> own_injector;
    };

    class stream {
    public:
        explicit stream(stream_state& state) noexcept : state_(&state) {}

    private:
        friend class backend;
        stream_state* state_;
    };

    struct event {
        stream_state* where = nullptr;
        std::uint64_t position = 0;
    };

    static result<std::unique_ptr<backend>> create(const options& o);
    static bool creation_blocks(const options& o) noexcept { return o.mode == host_mode::pool; }

    explicit backend(const options& o);
    backend(const backend&) = delete;
    backend& operator=(const backend&) = delete;
    ~backend();

    struct scope {};
    scope enter() const noexcept { return {}; }
    void listen(notification n) noexcept { pinned_->listen(n); }
    hardware_info hardware() const;

    result<stream> make_stream(priority p);

    error_code record(event& e, stream& s) noexcept;
    error_code wait(stream& s, event& e);
    result<progress> query(event& e) noexcept;
    error_code synchronize(event& e);
    error_code notify(event& e, notification n);

    result<void*> allocate(stream& s, std::size_t bytes, memory_kind kind = memory_kind::device);
    void release(stream& s, void* memory, std::size_t bytes, memory_kind kind = memory_kind::device) noexcept;
    static bool can_export() noexcept { return true; }
    result<detail::unique_fd> export_memory(void* memory, std::size_t bytes, memory_access access);
    result<void*> import_memory(detail::unique_fd descriptor, std::size_t bytes, memory_access access);
    std::shared_ptr<detail::pinned_memory> pinned() noexcept { return pinned_; }
    error_code pin(std::span<std::byte>) noexcept { return {}; }
    memory_info memory() const noexcept;

    const op_info* describe(std::uint64_t id) const noexcept { return table_.describe(id); }
    error_code find_code(bound_op& op) const noexcept;
    result<readiness> prepare(stream& s, bound_op& op);
    error_code enqueue(stream& s, bound_op& op);
    error_code finish(bound_op& op) noexcept { return op.status; }

    error_code status() noexcept;
    void abort() noexcept;
    bool quiet() const noexcept { return true; }
    static fault classify(const error_code& ec) noexcept;

    // Used by the ops.
    void trim() { memory_.trim(); }
    const host_options& how() const noexcept { return options_; }
    fault_injector& injector() const noexcept { return *options_.injector; }
    /// The resources of libraries, for the whole context.
    detail::resource_set& resources() noexcept { return resources_; }

private:
    error_code push(stream_state& s, const stream_item& item);
    void run(stream_state& s);
    bool run_item(stream_state& s, const stream_item& item);
    void run_op(const stream_item& item);
    void linger(std::chrono::nanoseconds time);
    bool dead() const noexcept { return dead_.load(std::memory_order_seq_cst); }

    options options_;
    const op_table& table_;
    memory_pool memory_;
    exportable_memory exportable_;
    std::shared_ptr<pinned_memory> pinned_;
    detail::resource_set resources_;
    std::vector<std::unique_ptr<stream_state>> streams_;

    std::atomic<bool> dead_{false};
    std::atomic<int> running_{0};
    std::mutex death_mutex_;
    std::condition_variable death_;

    std::unique_ptr<stream_runners> pool_;
};

} // namespace coaccel::host

#endif
