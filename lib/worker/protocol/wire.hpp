#ifndef COACCEL_WORKER_PROTOCOL_WIRE_HPP
#define COACCEL_WORKER_PROTOCOL_WIRE_HPP

#include "worker/protocol/codec.hpp"
#include "worker/protocol/packed_ops.hpp"
#include "worker/transport/ring.hpp"

#include <coaccel/core/context_options.hpp>
#include <coaccel/core/exec_options.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/cuda/cuda_options.hpp>
#include <coaccel/host/host_options.hpp>

#include <atomic>

// The protocol between a device and its worker. An op is sent as its own bytes, which are checked with its description;
// there is no code for single ops.
namespace coaccel::worker {

inline constexpr std::uint64_t magic = 0x6b726f776c636361ull;

/// Identifies this version and build of coaccel: two processes whose values differ do not communicate. Equal for builds
/// of the same sources, options and compiler, wherever they were made.
COACCEL_DECL std::uint64_t build_identity() noexcept;

// --- the control area ---------------------------------------------------------------------------------------------

inline constexpr std::size_t ring_bytes = std::size_t(256) << 10;

/// Values that the worker publishes continuously. Each is consistent by itself; together they may be from different
/// moments.
struct gauges {
    std::atomic<std::uint64_t> used, free, total, reserved, high_water, buffers, library_objects;
};

/// Configuration of the worker. None of the pointers in the options is set.
struct worker_setup {
    /// The value of a device_kind.
    std::uint8_t kind = 0;
    int ordinal = 0;
    context_options context{};
    host_options host{};
    cuda_options cuda{};
    std::uint64_t staging_bytes = 0;
    std::uint64_t max_data_bytes = 0;
    std::chrono::nanoseconds spin{};
    /// Heartbeat interval.
    std::chrono::nanoseconds beat{};
    /// The worker prepares everything that a first op would have to wait for.
    bool standby = false;
};

static_assert(std::is_trivially_copyable_v<worker_setup>);

/// At the beginning of the control area, before the rings. Written by the parent before the worker starts, except for
/// the members that the worker writes: `attached`, the rings, the heartbeat and the gauges.
struct control_block {
    // These two keep their position in every version.
    std::uint64_t magic_number = 0;
    std::uint64_t build = 0;

    worker_setup setup{};

    /// Set by the worker as soon as it has mapped this memory; a program that is not coaccel-worker never sets it.
    std::atomic<std::uint32_t> attached{0};

    ring_control requests;
    ring_control replies;
    alignas(64) std::atomic<std::uint64_t> beats;
    alignas(64) gauges now;
};

inline constexpr std::size_t ring_offset = 4096;
static_assert(sizeof(control_block) <= ring_offset);
inline constexpr std::size_t control_bytes = ring_offset + 2 * ring_bytes;

/// The worker's descriptors, starting at 3.
enum class descriptor : int { control = 3, staging, request_bell, reply_bell, lifeline, descriptors };

/// The worker's argument before the name of a plug-in; the control area has no room for a path.
inline constexpr const char* plugin_flag = "--plugin";

/// Exit statuses of a worker that could not start.
inline constexpr int exit_mismatch = 70;
inline constexpr int exit_usage = 2;

// --- records ------------------------------------------------------------------------------------------------------

enum class message_type : std::uint8_t {
    /// To the worker: the identity of the device and the generation of its context.
    adopt = 1,
    submit,
    release,
    /// A part of a compiled kernel.
    image,
    /// A compiled kernel that the parent no longer has.
    forget,
    /// A part of a plan.
    plan,
    /// A plan of which no instance is left.
    forget_plan,
    /// Loads an instance of a plan.
    load,
    /// Runs an instance of a plan.
    run,
    /// Maps memory that another worker has made.
    import_memory,
    /// Makes memory read-only, and passes it to the parent.
    export_memory,
    /// To the parent: the context was made.
    ready,
    /// The context could not be made.
    refused,
    ended,
    /// The backend does not implement an op of a request: the request and the position of the op. The worker does not
    /// know the name of such an op, so the parent composes the message.
    unsupported,
    lost,
};

/// Whether the context of the worker can export memory; part of `ready`.
enum class exporting : std::uint8_t { no, yes };

/// A fault that the worker injects; only the host backend supports it.
enum class injected_fault : std::uint8_t { none, poison, hang };

/// Replaces the device number in a ref: the ref means the result of an earlier op of the same request, with the index
/// `slot`.
inline constexpr std::uint32_t made_here = 0xffffffff;

enum class op_kind : std::uint8_t { plain, launch, allocate, write, read };

struct op_frame {
    op_kind what = op_kind::plain;
    // plain, launch
    std::uint64_t id = 0;
    std::span<const std::byte> data;
    std::uint32_t reply_size = 0;
    /// launch, or a call of a plug-in: the positions of its refs.
    std::vector<op_field> operands;
    // allocate, write, read: number of elements.
    std::uint64_t count = 0;
    dtype type = dtype::u8;
    // allocate: not memory_kind::managed.
    memory_kind kind = memory_kind::device;
    // write, read: the offset of the memory in the staging area.
    any_ref ref;
    std::uint64_t offset = 0;
};

/// The beginning of every request: its number, under which the worker replies, and how to run it.
struct request_head {
    std::uint64_t id = 0;
    exec_options how;
    worker::injected_fault injected_fault = injected_fault::none;
};

void put_request_head(encoder& out, message_type what, const request_head& head);
[[nodiscard]] bool get_request_head(decoder& in, request_head& head);

struct submit_frame : request_head {
    /// Never shrinks, so that its frames keep their memory; only the first `size` are valid.
    std::vector<op_frame> ops;
    std::size_t size = 0;
};

void put_op(encoder& out, const op_frame& op);
void put_submit_head(encoder& out, std::uint64_t id, const exec_options& how, injected_fault p, std::uint8_t ops);

/// Precondition: the message type has been read. Returns false if the record is invalid; `data` of the ops refers to
/// the record.
[[nodiscard]] bool get_submit(decoder& in, submit_frame& frame);

/// Limits on the compiled kernels that a worker holds, far above the needs of programs. The parent enforces them, so a
/// record beyond them is a protocol error.
struct image_limits {
    std::size_t images = std::size_t(1) << 16;
    /// The code of one kernel, and all code, names and symbols together.
    std::uint64_t bytes_each = std::uint64_t(256) << 20;
    std::uint64_t bytes = std::uint64_t(2) << 30;
    std::size_t symbol = longest_text;
};

struct image_frame {
    std::uint64_t id = 0;
    std::string name;
    std::string symbol;
    std::uint64_t total = 0;
    std::uint64_t offset = 0;
    std::span<const std::byte> part;
};

void put_image(encoder& out, const image_frame& frame);
[[nodiscard]] bool get_image(decoder& in, image_frame& frame);

void put_hardware(encoder& out, const hardware_info& info);
[[nodiscard]] bool get_hardware(decoder& in, hardware_info& info);

} // namespace coaccel::worker

#endif
