#ifndef COACCEL_CONTEXT_CONTEXT_HPP
#define COACCEL_CONTEXT_CONTEXT_HPP

#include <coaccel/core/context_options.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/detail/request.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace coaccel::detail {

using clock = std::chrono::steady_clock;

/// What a context tells the device above it.
class context_events {
public:
    /// A submitted request has ended; in the device's turn. It is no longer the context's.
    virtual void finished(request& r, error_code ec) noexcept = 0;

    /// The context is dead and holds no request any more; in the device's turn.
    virtual void lost(error_code why) noexcept = 0;

    /// Asks for a turn. From any thread; must not block.
    virtual void wake() noexcept = 0;

    /// Whether something waits for the turn to end; in the device's turn.
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
        /// When woken, or at `at` to look for faults.
        sleep,
    };

    kind when = kind::idle;
    clock::time_point at = clock::time_point::max();
};

/// Who a context works for.
struct context_identity {
    std::uint32_t device = 0;
    std::uint32_t generation = 0;
};

/// One generation of a device: buffers, lanes and ops in flight.
///
/// Everything but the destructor is called in the device's turn. The destructor may block and is
/// called elsewhere.
class COACCEL_DECL context {
public:
    virtual ~context() = default;

    virtual std::string_view backend_name() const noexcept = 0;

    /// Names who it works for; before the first request.
    virtual void adopt(context_identity identity) noexcept = 0;

    /// Makes host memory quick to copy from and to. It stays the caller's, and outlives the context.
    virtual error_code pin(std::span<std::byte> memory) = 0;

    /// What an op of this number is; null for one that is not supported.
    virtual const op_info* describe(std::uint64_t op_id) const noexcept = 0;

    /// Whether another context can follow this one when it is dead.
    virtual bool replaceable() const noexcept = 0;

    /// Starts a request, or finishes it at once with the reason why it cannot be started.
    virtual void submit(request& r, clock::time_point now) = 0;

    /// Gives a buffer back after the ops that use it. Unknown and stale refs are ignored.
    virtual void release(const any_ref& buffer) noexcept = 0;

    /// Looks for what has ended or gone wrong. When nothing has, but something is about to, it goes on looking for as
    /// long as `patience` says, unless the device has more to do; when something has, for a moment only.
    virtual next_turn turn(clock::time_point now, clock::duration patience) = 0;

    /// The same, looking once.
    next_turn turn(clock::time_point now) { return turn(now, clock::duration::zero()); }

    /// Ends all work, blocking, and hands over the requests in flight without completing them.
    virtual void drop(pending_list& out) noexcept = 0;

    /// Hands over the requests in flight and ends nothing: in a forked child, which has none of the threads that would
    /// have to end. The context must not be used or destroyed afterwards.
    virtual void disown(pending_list& out) noexcept { drop(out); }

    /// False from the first sign of death until `lost`; requests are then better kept back.
    virtual bool accepting() const noexcept = 0;

    virtual std::size_t live_buffers() const noexcept = 0;
    virtual memory_info memory() const noexcept = 0;

    /// Only `used` and `high_water` of it, without a call of the driver.
    virtual memory_info memory_use() const noexcept { return memory(); }
    virtual hardware_info hardware() const = 0;
    virtual std::shared_ptr<pinned_memory> pinned() const = 0;
};

using context_factory =
    std::function<result<std::unique_ptr<context>>(context_identity, context_events&, const context_options&)>;

} // namespace coaccel::detail

#endif
