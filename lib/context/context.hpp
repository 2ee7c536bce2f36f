#ifndef COACCEL_CONTEXT_CONTEXT_HPP
#define COACCEL_CONTEXT_CONTEXT_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/context_options.hpp>
#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/op_list.hpp>
#include <coaccel/core/result.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::detail {

using clock = std::chrono::steady_clock;

/// The objects that keep memory of other code alive, while buffers refer to it.
using owner_list = std::vector<std::shared_ptr<void>>;

/// What ended a context.
enum class loss_cause : std::uint8_t {
    /// An error of its work, or of the process in which it ran.
    fault,
    /// The hardware. It says nothing about the work, but what the memory contains is not reliable.
    hardware,
    /// Something else, such as a signal from another process. It says nothing about the work.
    outside,
};

/// Events that a context reports to the device above it.
class context_events {
public:
    /// A submitted request has completed, and the context no longer uses it. Called in the device's turn.
    virtual void finished(request& r, error_code ec) noexcept = 0;

    /// The context is dead and holds no requests any more. Called in the device's turn.
    virtual void lost(error_code why, loss_cause cause) noexcept = 0;

    /// No op uses this memory of other code any more, and its buffer was released. Called in the device's turn, which
    /// must not call foreign code: the owner is to be destroyed later.
    virtual void unused(std::shared_ptr<void> owner) noexcept { (void)owner; }

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

/// What a buffer of exported memory is to be. Preconditions: the number of bytes fits in 63 bits.
struct imported_buffer {
    std::uint64_t count = 0; ///< In elements.
    dtype type = dtype::u8;
    memory_access access = memory_access::read_only;

    std::uint64_t bytes() const noexcept { return count * size_of(type); }
};

/// One generation of a device: buffers, lanes and in-flight ops.
///
/// All functions except the destructor are called in the device's turn. The destructor may block and is called outside
/// it.
class COACCEL_DECL context {
public:
    virtual ~context() = default;

    /// Brackets calls that follow one another on one thread: what each of them needs to make of the thread, such as a
    /// current context of the driver, is then made once.
    class [[nodiscard]] scope {
    public:
        explicit scope(context& c) noexcept : context_(c) { context_.enter(); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() { context_.leave(); }

    private:
        context& context_;
    };

    virtual std::string_view backend_name() const noexcept = 0;

    /// Sets the identity. Precondition: no request has been submitted.
    virtual void adopt(context_identity identity) noexcept = 0;

    /// Pins host memory for fast copies. The memory remains the caller's and must outlive the context.
    virtual error_code pin(std::span<std::byte> memory) = 0;

    /// Whether buffers of memory_kind::exportable can be made and exported.
    virtual bool can_export() const noexcept { return false; }

    /// Returns a descriptor with which other processes can import the memory of an exportable buffer, even after the
    /// end of this one. With memory_access::read_only, the memory is read-only from then on. If it fails, the buffer
    /// can be used as before.
    ///
    /// Errors: errc::unsupported_op; errc::invalid_argument for another kind of buffer, a part of one, or one that ops
    /// still use; errc::out_of_memory.
    virtual result<unique_fd> export_buffer(const any_ref&, memory_access) { return errc::unsupported_op; }

    /// Makes a buffer of memory that was exported with this access.
    ///
    /// Errors: errc::unsupported_op; errc::invalid_argument for a descriptor of something else; errc::out_of_memory.
    virtual result<any_ref> import_buffer(unique_fd, const imported_buffer&) { return errc::unsupported_op; }

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

    /// Ends the context without waiting for its work, if it can: it is then lost by loss_cause::outside, because of
    /// `why`. A context that shares a process with other code cannot.
    virtual void abandon(const std::string& why) noexcept { (void)why; }

    /// Checks for completions and faults. If none is found but one is expected soon, polls for up to `patience`, unless
    /// the device has more to do. After a completion it polls for a moment only.
    virtual next_turn turn(clock::time_point now, clock::duration patience) = 0;

    /// Like `turn` above, but checks only once.
    next_turn turn(clock::time_point now) { return turn(now, clock::duration::zero()); }

    /// Ends all work (blocks), and hands over the in-flight requests without completing them.
    virtual void drop(async_op_list& out) noexcept = 0;

    /// After `drop`: hands over the owners of adopted memory, which the destructor would otherwise destroy. Null: there
    /// are none, or work that was abandoned may still use the memory.
    virtual std::unique_ptr<owner_list> take_owners() noexcept { return nullptr; }

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

private:
    virtual void enter() noexcept {}
    virtual void leave() noexcept {}
};

using context_factory =
    std::function<result<std::unique_ptr<context>>(context_identity, context_events&, const context_options&)>;

} // namespace coaccel::detail

#endif
