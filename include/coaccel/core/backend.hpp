#ifndef COACCEL_CORE_BACKEND_HPP
#define COACCEL_CORE_BACKEND_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/core/result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace coaccel {

/// How urgent an op is; backends map it onto stream priorities.
enum class priority : std::uint8_t { low, normal, high };

inline constexpr std::size_t priority_count = 3;

/// Where an event stands.
enum class progress : std::uint8_t { pending, passed };

/// Memory of a device as its backend sees it, in bytes.
struct memory_info {
    std::uint64_t used = 0;
    std::uint64_t free = 0;
    std::uint64_t total = 0;
};

/// A function a backend calls once, from any thread. It must not block, lock or call the backend.
struct notification {
    void (*function)(void*) noexcept = nullptr;
    void* argument = nullptr;
};

namespace detail {

template <class B>
concept backend_has_identity = requires {
    { B::name } -> std::convertible_to<std::string_view>;
    typename B::options;
    requires requires(const typename B::options& o) {
        { B::create(o) } -> std::same_as<result<std::unique_ptr<B>>>;
        { B::creation_blocks(o) } -> std::same_as<bool>;
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
concept backend_has_memory = requires(B& b, const B& cb, typename B::stream& s, void* p, std::size_t n) {
    { b.allocate(s, n) } -> std::same_as<result<void*>>;
    { b.release(s, p, n) } noexcept -> std::same_as<void>;
    { b.trim() } noexcept -> std::same_as<void>;
    { cb.memory() } noexcept -> std::same_as<memory_info>;
};

template <class B>
concept backend_has_ops = requires(B& b, const B& cb, typename B::stream& s, bound_op& op, const op_info& i) {
    { cb.supports(i) } noexcept -> std::same_as<bool>;
    { b.enqueue(s, op) } -> std::same_as<error_code>;
    { b.finish(op) } noexcept -> std::same_as<error_code>;
};

template <class B>
concept backend_has_faults = requires(B& b, const error_code& ec) {
    { b.status() } noexcept -> std::same_as<error_code>;
    { b.abort() } noexcept -> std::same_as<void>;
    { B::classify(ec) } noexcept -> std::same_as<fault>;
};

} // namespace detail

/// What the engine needs of an accelerator. The engine is written once over this concept.
///
/// - `create` makes a working context and may block, unless `creation_blocks` says it does not.
/// - `record` marks the work enqueued on a stream so far; `wait` holds a stream back until the mark
///   has passed; `query`, `synchronize` and `notify` learn of it. A notification does not fire behind
///   a fault.
/// - `allocate` and `release` take effect in the stream's order.
/// - `enqueue` starts an op and returns; `bound_op` stays at its address until the op has passed, and
///   `finish` is called for it before its reply is read, and may report the op's own failure.
/// - `status` is success, or the sticky error that has killed the context. It reports that error only
///   once the device has left all memory of its callers. `abort` asks a hung context to die.
template <class B>
concept backend = detail::backend_has_identity<B> && detail::backend_has_streams<B> && detail::backend_has_events<B> &&
                  detail::backend_has_memory<B> && detail::backend_has_ops<B> && detail::backend_has_faults<B>;

} // namespace coaccel

#endif
