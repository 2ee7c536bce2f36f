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

/// The number of priorities.
inline constexpr std::size_t priority_count = 3;

/// The state of an event.
enum class progress : std::uint8_t { pending, passed };

/// The outcome of preparing an op.
enum class readiness : std::uint8_t {
    pending,  ///< Not yet; prepare it again later.
    ready,    ///< It can be enqueued without waiting.
    launched, ///< It is on the stream, because preparing it included its launch.
};

/// Where the memory of a buffer is.
enum class memory_kind : std::uint8_t {
    /// On the device.
    device,
    /// On the device or on the host: the driver moves it to where it is used.
    managed,
    /// On the device, and other processes can map it after it was exported.
    exportable,
};

/// What the processes that map exported memory may do with it.
enum class memory_access : std::uint8_t {
    read_only,  ///< It cannot be changed any more: a write ends the context of the writer.
    read_write, ///< Every context that maps it can change it.
};

/// The memory of a device as its backend reports it, in bytes.
struct memory_info {
    /// Allocated to buffers and to library workspaces.
    std::uint64_t used = 0;
    std::uint64_t free = 0;  ///< Available for allocation.
    std::uint64_t total = 0; ///< The total capacity.
    /// Held by the memory pool behind the buffers, used or not.
    std::uint64_t reserved = 0;
    /// The peak amount in buffers.
    std::uint64_t high_water = 0;
    /// Page-locked host memory that is handed out.
    std::uint64_t pinned_used = 0;
    std::uint64_t pinned_reserved = 0; ///< Held by the pool of page-locked memory.
    /// Handles, plans and generators of libraries; their own memory is in `used` only as far as coaccel provides it.
    std::uint64_t library_objects = 0;
    /// The part of `used` that all worker processes of the device share. It exists once, however many they are.
    std::uint64_t shared = 0;
};

/// The hardware behind a device.
struct hardware_info {
    std::string name; ///< The name reported by the driver or the system.
    int ordinal = 0;  ///< Its index among several.
    /// Ten times the major version plus the minor version; zero if the hardware has none.
    int compute_capability = 0;
    int multiprocessors = 0; ///< Zero if the hardware has none.
    /// The newest CUDA version that the driver supports: 1000 * major + 10 * minor. Zero: no driver.
    int driver_version = 0;
    /// The ID of the worker process that uses it; zero: this process.
    int process = 0;
};

/// A function that a backend calls once, from any thread. It must not block, lock or call the backend.
struct notification {
    void (*function)(void*) noexcept = nullptr; ///< The function.
    void* argument = nullptr;                   ///< Its argument.
};

namespace detail {

/// Host memory that the device accesses directly, without a staging copy. It stays valid as long as this object, even
/// after the context that it was made for has died.
class COACCEL_DECL pinned_memory {
public:
    virtual ~pinned_memory() = default;

    /// Null: none is available now; the backend's listener is notified when to retry. errc::out_of_memory: the size can
    /// never be available.
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
concept backend_has_ops = requires(B& b, const B& cb, typename B::stream& s, bound_op& op) {
    { cb.describe(std::uint64_t()) } noexcept -> std::same_as<const op_info*>;
    { cb.find_code(op) } noexcept -> std::same_as<error_code>;
    { b.prepare(s, op) } -> std::same_as<result<readiness>>;
    { b.enqueue(s, op) } -> std::same_as<error_code>;
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

/// The engine's requirements on an accelerator. The engine is written once, over this concept.
///
/// - `replaceable`: after a context has died, another one can be created in the same process.
/// - `create` makes a working context. It may block unless `creation_blocks` returns false.
/// - `record` marks the work enqueued on a stream so far. `wait` holds a stream back until the mark has passed.
///   `query`, `synchronize` and `notify` observe the mark. A notification behind a fault does not fire.
/// - All functions except `create`, `enter`, `synchronize` and `pinned` are called while a result of `enter` exists.
///   That result makes the context current on the calling thread.
/// - `allocate` and `release` take effect in stream order. All allocations are on one stream that has no other work;
///   memory released there is no longer in use. `allocate` reports out of memory only after a trim and a second
///   attempt. A null result means "not yet".
/// - `pin` makes the caller's memory, which outlives the backend, equivalent to the backend's own pinned memory.
/// - `can_export`, if there is one, tells whether memory_kind::exportable is supported. If it is, `export_memory`
///   returns a descriptor of such memory, which with memory_access::read_only it makes read-only for good, and
///   `import_memory` maps the memory of a descriptor that was exported with the same access. Both are called while no
///   op uses the memory. `release` takes what either has returned.
/// - `check_memory`, if there is one, refuses memory of other code that the ops cannot use. `work_remains`, if there is
///   one, tells before the destruction whether work that cannot be stopped will still use memory.
/// - `describe` finds each supported op by its ID, except ops whose description differs from call to call.
/// - `find_code` sets `bound_op::code`, or says why the backend does not implement the op or these fields of it.
/// - `prepare` provides everything that launching the op needs: handles, plans, memory. It is not called while the
///   stream is captured. `pending`: not yet; nothing else may be put on that stream until `prepare` has been called
///   again for the same op and no longer returns `pending`. An op whose launch may block is launched in the background
///   as part of its preparation.
/// - `enqueue` launches a prepared op on the stream. It neither waits nor allocates.
/// - A `bound_op` keeps its address until the op has passed. `finish` is called for it before its reply is read, and
///   may report the op's own failure.
/// - The listener is notified, from any thread, when something that was "not yet" is worth another attempt.
/// - `status` returns success, or the sticky error that killed the context. It reports that error only once the device
///   no longer accesses the callers' memory. `abort` asks a hung context to die. A dead backend is destroyed if it is
///   `quiet`, which means that none of its threads is inside a call that may never return; otherwise it is leaked.
template <class B>
concept backend = detail::backend_has_identity<B> && detail::backend_has_streams<B> && detail::backend_has_events<B> &&
                  detail::backend_has_memory<B> && detail::backend_has_ops<B> && detail::backend_has_faults<B>;

} // namespace coaccel

#endif
