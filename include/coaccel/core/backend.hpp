#ifndef COACCEL_CORE_BACKEND_HPP
#define COACCEL_CORE_BACKEND_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/core/result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace coaccel {

/// How urgent an op is; backends map it onto stream priorities.
enum class priority : std::uint8_t { low, normal, high };

inline constexpr std::size_t priority_count = 3;

/// Where an event stands.
enum class progress : std::uint8_t { pending, passed };

/// Where the memory of a buffer lives.
enum class memory_kind : std::uint8_t {
    /// On the device.
    device,
    /// Wherever it is used: the driver moves it between the device and the host.
    managed,
};

/// Memory of a device as its backend sees it, in bytes.
struct memory_info {
    /// In buffers, and in what libraries were given to work with.
    std::uint64_t used = 0;
    std::uint64_t free = 0;  ///< What can still be allocated.
    std::uint64_t total = 0; ///< What there is.
    /// Held by the pool behind the buffers, used or not.
    std::uint64_t reserved = 0;
    /// The most there ever was in buffers at a time.
    std::uint64_t high_water = 0;
    /// Page-locked host memory: handed out, and held by its pool.
    std::uint64_t pinned_used = 0;
    std::uint64_t pinned_reserved = 0; ///< Held by the pool of page-locked memory.
};

/// The hardware behind a device.
struct hardware_info {
    std::string name; ///< As the driver or the system names it.
    int ordinal = 0;  ///< Which one of several.
    /// Major times ten plus minor; zero where there is no such thing.
    int compute_capability = 0;
    int multiprocessors = 0; ///< Zero where there is no such thing.
    /// The newest CUDA the driver is for: 1000 times the major version plus 10 times the minor one. Zero: no driver.
    int driver_version = 0;
    /// The worker process it is used from; zero: this process.
    int process = 0;
};

/// A function a backend calls once, from any thread. It must not block, lock or call the backend.
struct notification {
    void (*function)(void*) noexcept = nullptr; ///< What is called.
    void* argument = nullptr;                   ///< With what.
};

namespace detail {

/// Host memory that the device reaches without a detour. It stays valid for as long as this object, also when the
/// context it was made for is dead.
class COACCEL_DECL pinned_memory {
public:
    virtual ~pinned_memory() = default;

    /// Null: not at the moment; the backend's listener is told when to ask again. errc::out_of_memory: never.
    virtual result<void*> try_allocate(std::size_t bytes) = 0;

    /// From any thread.
    virtual void release(void* memory) noexcept = 0;
};

template <class B>
concept backend_has_identity = requires {
    { B::name } -> std::convertible_to<std::string_view>;
    { B::replaceable } -> std::convertible_to<bool>;
    typename B::options;
    requires requires(const typename B::options& o) {
        { B::create(o) } -> std::same_as<result<std::unique_ptr<B>>>;
        { B::creation_blocks(o) } -> std::same_as<bool>;
    };
    requires requires(B& b, const B& cb, notification n) {
        b.enter();
        { b.listen(n) } noexcept -> std::same_as<void>;
        { cb.hardware() } -> std::same_as<hardware_info>;
    };
};

template <class B>
concept backend_has_streams = requires(B& b, priority p) {
    typename B::stream;
    { b.make_stream(p) } -> std::same_as<result<typename B::stream>>;
};

template <class B>
concept backend_has_events = std::default_initializable<typename B::event> && std::movable<typename B::event> &&
                             requires(B& b, typename B::stream& s, typename B::event& e, notification n) {
                                 { b.record(e, s) } -> std::same_as<error_code>;
                                 { b.wait(s, e) } -> std::same_as<error_code>;
                                 { b.query(e) } -> std::same_as<result<progress>>;
                                 { b.synchronize(e) } -> std::same_as<error_code>;
                                 { b.notify(e, n) } -> std::same_as<error_code>;
                             };

template <class B>
concept backend_has_memory = requires(B& b, const B& cb, typename B::stream& s, void* p, std::size_t n, memory_kind k) {
    { b.allocate(s, n, k) } -> std::same_as<result<void*>>;
    { b.release(s, p, n, k) } noexcept -> std::same_as<void>;
    { b.pinned() } -> std::same_as<std::shared_ptr<pinned_memory>>;
    { b.pin(std::span<std::byte>()) } -> std::same_as<error_code>;
    { cb.memory() } noexcept -> std::same_as<memory_info>;
};

template <class B>
concept backend_has_ops = requires(B& b, const B& cb, typename B::stream& s, bound_op& op, const op_info& i) {
    { cb.describe(std::uint64_t()) } noexcept -> std::same_as<const op_info*>;
    { cb.supports(i) } noexcept -> std::same_as<bool>;
    { b.enqueue(s, op) } -> std::same_as<result<progress>>;
    { b.finish(op) } noexcept -> std::same_as<error_code>;
};

template <class B>
concept backend_has_faults = requires(B& b, const error_code& ec) {
    { b.status() } noexcept -> std::same_as<error_code>;
    { b.abort() } noexcept -> std::same_as<void>;
    { b.quiet() } noexcept -> std::same_as<bool>;
    { B::classify(ec) } noexcept -> std::same_as<fault>;
};

} // namespace detail

/// What the engine needs of an accelerator. The engine is written once over this concept.
///
/// - `replaceable`: a context that died can be followed by another in the same process.
/// - `create` makes a working context and may block, unless `creation_blocks` says it does not.
/// - `record` marks the work enqueued on a stream so far; `wait` holds a stream back until the mark
///   has passed; `query`, `synchronize` and `notify` learn of it. A notification does not fire behind
///   a fault.
/// - Everything but `create`, `enter`, `synchronize` and `pinned` is called under `enter`, whose result makes the
/// context
///   current on the calling thread for as long as it lives.
/// - `allocate` and `release` take effect in the stream's order. All allocations are on one stream that has no other
///   work; memory released there is not used by anybody any more. Out of memory is an answer only after a
///   trim and a second try. Null means "not yet".
/// - `pin` makes memory of the caller's, which outlives the backend, as good as its own pinned memory.
/// - `describe` knows every op that is supported by its number, but those whose description differs from call to call.
/// - `enqueue` starts an op and returns. `passed`: all of the op is on the stream. `pending`: not yet; nothing else may
/// be
///   put on that stream until `enqueue` has been called again for the same op and no longer says so.
/// - `bound_op` stays at its address until the op has passed, and `finish` is called for it before its reply
///   is read, and may report the op's own failure.
/// - The listener is told, from any thread, when something that was "not yet" is worth another try.
/// - `status` is success, or the sticky error that has killed the context. It reports that error only
///   once the device has left all memory of its callers. `abort` asks a hung context to die. A dead backend is
///   destroyed when it is `quiet`, with no thread of its own inside a call that may never return; else it is left.
template <class B>
concept backend = detail::backend_has_identity<B> && detail::backend_has_streams<B> && detail::backend_has_events<B> &&
                  detail::backend_has_memory<B> && detail::backend_has_ops<B> && detail::backend_has_faults<B>;

} // namespace coaccel

#endif
