#ifndef COACCEL_SERVE_PLAN_RUNNER_PLACES_HPP
#define COACCEL_SERVE_PLAN_RUNNER_PLACES_HPP

#include "actor/watch_access.hpp"
#include "serve/batcher_core.hpp"
#include "serve/plan_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// The batches that a plan_runner can have at the same time, and their memory.
namespace coaccel::detail {

/// A batch on a device, with its memory.
struct plan_runner::place final : batch_run {
    explicit place(std::size_t r) noexcept : replica(r) {}

    const std::size_t replica;
    std::size_t model = 0;
    /// The device reads the inputs from here and writes the outputs here.
    pinned_buffer<std::uint8_t> memory;
    /// Replaces `memory`, which belongs to an earlier context.
    pinned_buffer<std::uint8_t> next_memory;
    /// The generation of the context for which the newest memory was made.
    generation made_for = 0;
    bool allocating = false;
    bool busy = false;
    /// What it has started.
    enum class step : std::uint8_t {
        collecting, ///< The copy of the inputs on another thread.
        running,    ///< A run.
        delivering, ///< The copy of the outputs on another thread.
    };
    step now = step::running;
    /// The last copy on another thread.
    member_copies::job_ptr copy;
    listed_run arguments;
    /// The members run one by one, in this memory.
    bool splitting = false;
    std::vector<std::byte> single;
    /// The member that runs.
    std::size_t member = 0;

    std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(memory.data()); }
};

/// Wakes the batcher when the state of a device changes, on any thread. It has no handler, which would keep the
/// executor of the device running for as long as the device has failed.
struct plan_runner::repair_watch final : async_op_base {
    explicit repair_watch(const batcher_ptr& c) noexcept : core(c) {}

    void post() override
    {
        // It is cancelled when the batcher needs no device any more.
        const auto c = ec ? nullptr : core.lock();
        // This object is destroyed, so that a batcher that is woken can wait for the next change.
        self.reset();
        if (c)
            c->wake();
    }
    void destroy() noexcept override { self.reset(); }

    const std::weak_ptr<batcher_core> core;
    /// Until the device consumes it.
    std::shared_ptr<repair_watch> self;
};

struct plan_runner::replica {
    explicit replica(device d) noexcept : gpu(std::move(d)) {}
    replica(const replica&) = delete;
    replica& operator=(const replica&) = delete;

    /// Otherwise the device would keep the watch until its state changes, which may be never.
    ~replica()
    {
        if (const auto waiting = repair.lock())
            watch_access::cancel(*state, *waiting);
    }

    /// Wakes the batcher at the next change of the device. Preconditions: it does not wait for one yet.
    void wait_for_repair(watch<device_status> source, const batcher_ptr& core)
    {
        const auto made = std::make_shared<repair_watch>(core);
        state = std::move(source);
        repair = made;
        made->self = made;
        watch_access::wait(*state, *made);
    }

    device gpu;
    /// For each model, by size.
    std::vector<std::vector<sized_plan>> plans;
    std::vector<std::unique_ptr<place>> places;
    /// Waits for a change of a device that has failed.
    std::weak_ptr<repair_watch> repair;
    /// Where `repair` waits; set if it does.
    std::optional<watch<device_status>> state;
};

} // namespace coaccel::detail

#endif
