#ifndef COACCEL_CONTEXT_CONTEXT_HPP
#define COACCEL_CONTEXT_CONTEXT_HPP

#include <coaccel/core/context_options.hpp>
#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/op_list.hpp>
#include <coaccel/core/result.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace coaccel::detail {

using clock = std::chrono::steady_clock;

/// Events that a context reports to the device above it.
class context_events {
public:
    /// A submitted request has completed, and the context no longer uses it. Called in the device's turn.
    virtual void finished(request& r, error_code ec) noexcept = 0;

    /// The context is dead and holds no requests any more. Called in the device's turn.
    virtual void lost(error_code why) noexcept = 0;

    /// Requests a turn. Called from any thread; must not block.
    virtual void wake() noexcept = 0;

    /// Whether other work waits for the turn to end. Called in the device's turn.
    virtual bool has_more() noexcept = 0;

protected:
    ~context_events() = default;
};

/// When a context wants its next turn.
struct next_turn {
    enum class kind : std::uint8_t {
        /// Nothing is in flight.
        idle,
        /// As soon as other work on the executor allows.
        again,
        /// When woken, or at the time `at`.
        sleep,
    };

    kind when = kind::idle;
    clock::time_point at = clock::time_point::max();
};

/// The device and the generation that a context belongs to.
struct context_identity {
    std::uint32_t device = 0;
    std::uint32_t generation = 0;
};

/// One generation of a device: buffers, lanes and in-flight ops.
///
/// All functions except the destructor are called in the device's turn. The destructor may block and is called outside
/// it.
class COACCEL_DECL context {
public:
    virtual ~context() = default;

    virtual std::string_view backend_name() const noexcept = 0;

    /// Sets the identity. Precondition: no request has been submitted.
    virtual void adopt(context_identity identity) noexcept = 0;

    /// Pins host memory for fast copies. The memory remains the caller's and must outlive the context.
    virtual error_code pin(std::span<std::byte> memory) = 0;

    /// The description of the op with this id; null if it is not supported.
    virtual const op_info* describe(std::uint64_t op_id) const noexcept = 0;

    /// Adds ops on `scratch`, 256 elements, that initialise everything that later ops would otherwise have to wait for.
    virtual void add_warm_up(op_list&, const ref<float>&) const {}

    /// Whether a new context can replace this one when it is dead.
    virtual bool replaceable() const noexcept = 0;

    /// Starts a request, or finishes it at once with the reason why it cannot start.
    virtual void submit(request& r, clock::time_point now) = 0;

    /// Frees a buffer after the ops that use it. Unknown and stale refs are ignored.
    virtual void release(const any_ref& buffer) noexcept = 0;

    /// Checks for completions and faults. If none is found but one is expected soon, polls for up to `patience`, unless
    /// the device has more to do. After a completion it polls for a moment only.
    virtual next_turn turn(clock::time_point now, clock::duration patience) = 0;

    /// Like `turn` above, but checks only once.
    next_turn turn(clock::time_point now) { return turn(now, clock::duration::zero()); }

    /// Ends all work (blocks), and hands over the in-flight requests without completing them.
    virtual void drop(async_op_list& out) noexcept = 0;

    /// Hands over the in-flight requests and stops nothing. For a forked child, which has none of the threads to stop.
    /// The context must not be used or destroyed afterwards.
    virtual void disown(async_op_list& out) noexcept { drop(out); }

    /// False from the first sign of a fatal fault until `lost`. Requests submitted in this state fail; keep them queued
    /// instead.
    virtual bool accepting() const noexcept = 0;

    virtual std::size_t live_buffers() const noexcept = 0;
    virtual memory_info memory() const noexcept = 0;

    /// Only `used` and `high_water` are set; makes no driver call.
    virtual memory_info memory_use() const noexcept { return memory(); }
    virtual hardware_info hardware() const = 0;
    virtual std::shared_ptr<pinned_memory> pinned() const = 0;
};

using context_factory =
    std::function<result<std::unique_ptr<context>>(context_identity, context_events&, const context_options&)>;

} // namespace coaccel::detail

#endif
