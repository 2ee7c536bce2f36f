#ifndef COACCEL_WORKER_WIRE_HPP
#define COACCEL_WORKER_WIRE_HPP

#include "worker/codec.hpp"
#include "worker/ring.hpp"

#include <coaccel/core/context_options.hpp>
#include <coaccel/core/exec_options.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/cuda/cuda_options.hpp>
#include <coaccel/host/host_options.hpp>

#include <atomic>

// What a device and its worker say to each other. An op travels as its own bytes, which its description knows how to
// check; there is no code for single ops.
namespace coaccel::worker {

inline constexpr std::uint64_t magic = 0x6b726f776c636361ull;

/// Of this version and build of coaccel: two that differ do not talk to each other. The same for builds of the same
/// sources, options and compiler, wherever they were made.
COACCEL_DECL std::uint64_t build_identity() noexcept;

// --- the control area ---------------------------------------------------------------------------------------------

inline constexpr std::size_t ring_bytes = std::size_t(256) << 10;

/// What the worker tells without being asked. Each number by itself; together they may be of different moments.
struct gauges {
    std::atomic<std::uint64_t> used, free, total, reserved, high_water, buffers;
};

/// What the worker is to be. Of the options' pointers none is set.
struct worker_setup {
    /// A device_kind.
    std::uint8_t kind = 0;
    int ordinal = 0;
    context_options context{};
    host_options host{};
    cuda_options cuda{};
    std::uint64_t staging_bytes = 0;
    std::uint64_t max_data_bytes = 0;
    std::chrono::nanoseconds spin{};
    /// How often it gives a sign of life.
    std::chrono::nanoseconds beat{};
    /// It is to have everything ready that a first op would have to wait for.
    bool standby = false;
};

static_assert(std::is_trivially_copyable_v<worker_setup>);

/// At the beginning of the control area; the rings come behind it. Written by the parent before the worker starts, but
/// for what the types of the rings and the gauges say.
struct control_block {
    // These two stay where they are in every version.
    std::uint64_t magic_number = 0;
    std::uint64_t build = 0;

    worker_setup setup{};

    /// Set by the worker as soon as it has this memory; a program that is not coaccel-worker never does.
    std::atomic<std::uint32_t> attached{0};

    ring_control requests;
    ring_control replies;
    alignas(64) std::atomic<std::uint64_t> beats;
    alignas(64) gauges now;
};

inline constexpr std::size_t ring_offset = 4096;
static_assert(sizeof(control_block) <= ring_offset);
inline constexpr std::size_t control_bytes = ring_offset + 2 * ring_bytes;

/// The worker's descriptors, from 3 on.
enum class descriptor : int { control = 3, staging, request_bell, reply_bell, lifeline };

/// The worker's argument before the name of a plug-in; a path has no room in the control area.
inline constexpr const char* plugin_flag = "--plugin";

/// How a worker ends that could not begin.
inline constexpr int exit_mismatch = 70;
inline constexpr int exit_usage = 2;

// --- records ------------------------------------------------------------------------------------------------------

enum class verb : std::uint8_t {
    /// To the worker: who it works for.
    adopt = 1,
    submit,
    release,
    /// A part of a compiled kernel.
    image,
    /// A compiled kernel that the parent does not have any more.
    forget,
    /// To the parent: the context is made.
    ready,
    /// The context could not be made.
    refused,
    ended,
    lost,
};

/// A fault for the worker to play; only the host backend does.
enum class play : std::uint8_t { none, poison, hang };

/// Instead of a device's number in a ref: what an earlier op of the same request made, which `slot` counts.
inline constexpr std::uint32_t made_here = 0xffffffff;

/// No op is larger; launches are the largest.
inline constexpr std::size_t largest_op = 4096;

constexpr bool is_dtype(dtype t) noexcept
{
    return t >= dtype::f16 && t <= dtype::c128;
}

enum class op_kind : std::uint8_t { plain, launch, allocate, write, read };

struct op_frame {
    op_kind what = op_kind::plain;
    // plain, launch
    std::uint64_t id = 0;
    std::span<const std::byte> data;
    std::uint32_t reply_size = 0;
    /// launch, which is also a call of a plug-in: where its refs are.
    std::vector<op_field> operands;
    // allocate, write, read: so many elements.
    std::uint64_t count = 0;
    dtype type = dtype::u8;
    // write, read: with memory at an offset of the staging area.
    any_ref ref;
    std::uint64_t offset = 0;
};

struct submit_frame {
    std::uint64_t id = 0;
    exec_options how;
    worker::play play = play::none;
    /// Never shrinks, so that its frames keep their memory; the first `size` count.
    std::vector<op_frame> ops;
    std::size_t size = 0;
};

void put_op(encoder& out, const op_frame& op);
void put_submit_head(encoder& out, std::uint64_t id, const exec_options& how, play p, std::uint8_t ops);

/// The verb has been read. False when it makes no sense; the data of the ops stays in the record.
[[nodiscard]] bool get_submit(decoder& in, submit_frame& frame);

/// How much of compiled kernels a worker takes, far beyond what programs have. The parent refuses what is beyond it, so
/// that one that sends more all the same talks nonsense.
struct image_limits {
    std::size_t images = std::size_t(1) << 16;
    /// Of the code of one, and of all code, names and symbols together.
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
