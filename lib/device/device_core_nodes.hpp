#ifndef COACCEL_DEVICE_DEVICE_CORE_NODES_HPP
#define COACCEL_DEVICE_DEVICE_CORE_NODES_HPP

#include "device/device_core.hpp"

#include <coaccel/core/detail/block_pool.hpp>

#include <memory>
#include <utility>

// The messages in a device's inbox other than requests, and the functions it posts.
namespace coaccel::detail {

struct device_core::turn_function {
    /// Longer than another turn takes to run, and too short to delay other work on the executor noticeably.
    static constexpr auto longest_look = std::chrono::microseconds(5);

    core_ptr core;

    void operator()()
    {
        // Several devices on one thread would delay each other by polling.
        const bool alone = std::exchange(last_here_, core.get()) == core.get();
        const auto mine = core->turn(turn_caller::executor, alone ? longest_look : clock::duration::zero());
        core->completions_.run(mine, [this] { core->post_runner(); });
    }
};

/// Calls the handlers that no other thread has called yet.
struct device_core::runner_function {
    core_ptr core;

    void operator()()
    {
        core->completions_.run_posted([this] { core->post_runner(); });
    }
};

// The reference a device holds to itself. An async_op_base, so that an execution context that is destroyed drops it
// together with the waiting operations, outside all locks.
struct device_core::self_reference final : async_op_base {
    explicit self_reference(core_ptr c) noexcept : core(std::move(c)) {}

    void post() override {}

    void destroy() noexcept override
    {
        // Each release node holds a reference to the device.
        core->releases_.clear();
        // Their destructors are foreign code, which must not run under the lock of the execution context's list.
        const auto owners = std::move(core->last_owners_);
        // The source may hold the executor and standby workers.
        const auto source = core->supply_.take_all();
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
    async_op_list dropped;
};

/// The standby has been made, or could not be, or has been ended with these requests on their way.
struct device_core::standby_node final : inbox_node {
    standby_node() noexcept : inbox_node(kind::standby) {}
    result<std::unique_ptr<context>> made = errc::device_stopped;
    async_op_list dropped;
};

/// Owns one buffer for its caller, and is the inbox message that releases it. Holds a reference to itself while it is
/// in the inbox.
struct device_core::release_node final : inbox_node, buffer_owner, std::enable_shared_from_this<release_node> {
    explicit release_node(core_ptr c) noexcept : inbox_node(kind::release), core(std::move(c)) {}

    void release(const any_ref& r) noexcept override
    {
        if (core->inbox_.closed())
            return;
        ref = r;
        self = shared_from_this();
        core->push(*this);
    }

    core_ptr core;
    any_ref ref;
    /// The last request that arrived before the release. The buffer must stay until that request has been started.
    std::uint64_t after = 0;
    std::shared_ptr<release_node> self;
};

} // namespace coaccel::detail

#endif
