#ifndef COACCEL_DEVICE_CORE_NODES_HPP
#define COACCEL_DEVICE_CORE_NODES_HPP

#include "device/device_core.hpp"

#include <coaccel/detail/block_pool.hpp>

#include <memory>
#include <utility>

// What travels through a device's inbox besides requests.
namespace coaccel::detail {

struct device_core::turn_function {
    /// Longer than coming round takes, and too short for others on the executor to notice.
    static constexpr auto longest_look = std::chrono::microseconds(5);

    core_ptr core;

    void operator()()
    {
        // Devices that take turns on one thread would have each other wait.
        const bool alone = std::exchange(last_here_, core.get()) == core.get();
        const auto mine = core->turn(turn_caller::executor, alone ? longest_look : clock::duration::zero());
        core->completions_.run(mine, [this] { core->post_runner(); });
    }
};

/// Calls the handlers that are still in the completion queue.
struct device_core::runner_function {
    core_ptr core;

    void operator()()
    {
        core->completions_.run_posted([this] { core->post_runner(); });
    }
};

// The reference a device holds to itself. A pending, so that an execution context that goes away drops
// it together with the waiting operations, outside of all locks.
struct device_core::keeper final : pending {
    explicit keeper(core_ptr c) noexcept : core(std::move(c)) {}

    void post() override {}

    void destroy() noexcept override
    {
        // Each of them holds the device.
        core->releases_.clear();
        // It may hold the executor, and workers that stand ready.
        const bool orphaned = core->orphaned();
        auto source = std::exchange(core->source_, {});
        if (orphaned)
            (void)new auto(std::move(source));
        delete this;
    }

    core_ptr core;
};

/// Cancels one request, or with id 0 all of them.
struct device_core::cancel_node final : inbox_node {
    cancel_node(std::uint64_t i, ending e) noexcept : inbox_node(kind::cancel), id(i), why(e) {}
    std::uint64_t id;
    ending why;
};

struct device_core::created_node final : inbox_node {
    explicit created_node(result<std::unique_ptr<context>> r) noexcept : inbox_node(kind::created), made(std::move(r))
    {}
    result<std::unique_ptr<context>> made;
};

struct device_core::compiled_node final : inbox_node {
    compiled_node(std::uint64_t i, result<jit::kernel> r) : inbox_node(kind::compiled), id(i), made(std::move(r)) {}
    std::uint64_t id;
    result<jit::kernel> made;
};

struct device_core::gone_node final : inbox_node {
    gone_node() noexcept : inbox_node(kind::gone) {}
    pending_list dropped;
};

/// Owns one buffer for its caller, and carries it home. Holds itself while it is on its way.
struct device_core::release_node final : inbox_node, buffer_owner, std::enable_shared_from_this<release_node> {
    explicit release_node(core_ptr c) noexcept : inbox_node(kind::release), core(std::move(c)) {}

    void release(const any_ref& r) noexcept override
    {
        if (core->gone_.load(std::memory_order_acquire))
            return;
        ref = r;
        self = shared_from_this();
        core->push(*this);
    }

    core_ptr core;
    any_ref ref;
    /// The last request that came before; the buffer is its until it has been started.
    std::uint64_t after = 0;
    std::shared_ptr<release_node> self;
};

} // namespace coaccel::detail

#endif
