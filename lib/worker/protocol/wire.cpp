#include "worker/protocol/wire.hpp"

#include "core/escape_text.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>

#include <string_view>

namespace coaccel::worker {
namespace {

bool get_op(decoder& in, op_frame& op)
{
    if (!in.get(op.what, op_kind::plain, op_kind::read))
        return false;
    switch (op.what) {
    case op_kind::plain:
    case op_kind::launch: {
        std::uint16_t size = 0;
        if (!in.get(op.id) || !in.get(op.reply_size) || !in.get(size) || size == 0 || size > largest_op)
            return false;
        if (op.what == op_kind::launch && !get_operands(in, op.operands, size))
            return false;
        return in.get_bytes(size, op.data);
    }
    case op_kind::allocate:
        return in.get(op.count) && in.get(op.type, dtype::f16, dtype::c128) &&
               in.get(op.kind, memory_kind::device, memory_kind::exportable) && op.kind != memory_kind::managed;
    case op_kind::write:
    case op_kind::read:
        return in.get_ref(op.ref) && in.get(op.offset) && in.get(op.count) && in.get(op.type, dtype::f16, dtype::c128);
    }
    return false;
}

} // namespace

std::uint64_t build_identity() noexcept
{
    using detail::hash;
    std::uint64_t id = hash(COACCEL_VERSION_STRING);
    id = hash(__VERSION__, id);
    // The sources that define the protocol, and the build options.
    id = hash(COACCEL_BUILD, id);
    // The layout of ops and options, which compiler flags may change.
    for (const std::uint64_t part :
         {info_of<blas::gemm<float>>().id, info_of<blas::gemv<double>>().id, info_of<memory::fill<float>>().id,
          info_of<detail::plan_run_op>().id, info_of<detail::plan_unload_op>().id, std::uint64_t(sizeof(worker_setup)),
          std::uint64_t(sizeof(control_block)), std::uint64_t(sizeof(jit::launch_head)),
          std::uint64_t(sizeof(plugin::call_head))})
        id = (id ^ part) * 0x100000001b3ull;
    return id;
}

void put_op(encoder& out, const op_frame& op)
{
    out.put(op.what);
    switch (op.what) {
    case op_kind::plain:
    case op_kind::launch:
        out.put(op.id);
        out.put(op.reply_size);
        out.put(static_cast<std::uint16_t>(op.data.size()));
        if (op.what == op_kind::launch)
            put_operands(out, op.operands);
        out.put_bytes(op.data);
        break;
    case op_kind::allocate:
        out.put(op.count);
        out.put(op.type);
        out.put(op.kind);
        break;
    case op_kind::write:
    case op_kind::read:
        out.put_ref(op.ref);
        out.put(op.offset);
        out.put(op.count);
        out.put(op.type);
        break;
    }
}

void put_request_head(encoder& out, message_type what, const request_head& head)
{
    out.put(what);
    out.put(head.id);
    out.put(static_cast<std::int32_t>(head.how.lane));
    out.put(head.how.priority);
    out.put(head.injected_fault);
}

bool get_request_head(decoder& in, request_head& head)
{
    std::int32_t lane = 0;
    if (!in.get(head.id) || !in.get(lane) || !in.get(head.how.priority, priority::low, priority::high) ||
        !in.get(head.injected_fault, injected_fault::none, injected_fault::hang))
        return false;
    // Any number is accepted here: the context rejects an invalid lane.
    head.how.lane = lane;
    return true;
}

void put_submit_head(encoder& out, std::uint64_t id, const exec_options& how, injected_fault p, std::uint8_t ops)
{
    put_request_head(out, message_type::submit, {id, how, p});
    out.put(ops);
}

bool get_submit(decoder& in, submit_frame& frame)
{
    std::uint8_t ops = 0;
    if (!get_request_head(in, frame) || !in.get(ops) || ops == 0)
        return false;
    if (frame.ops.size() < ops)
        frame.ops.resize(ops);
    frame.size = ops;
    for (std::size_t i = 0; i < frame.size; ++i)
        if (!get_op(in, frame.ops[i]))
            return false;
    return in.at_end();
}

void put_image(encoder& out, const image_frame& frame)
{
    out.put(message_type::image);
    out.put(frame.id);
    out.put_text(frame.name);
    out.put_text(frame.symbol);
    out.put(frame.total);
    out.put(frame.offset);
    out.put(static_cast<std::uint32_t>(frame.part.size()));
    out.put_bytes(frame.part);
}

bool get_image(decoder& in, image_frame& frame)
{
    std::uint32_t size = 0;
    if (!in.get(frame.id) || !in.get_text(frame.name) || !in.get_text(frame.symbol) || !in.get(frame.total) ||
        !in.get(frame.offset) || !in.get(size) || !in.get_bytes(size, frame.part))
        return false;
    return in.at_end() && frame.total <= image_limits{}.bytes_each && frame.offset <= frame.total &&
           size <= frame.total - frame.offset;
}

void put_hardware(encoder& out, const hardware_info& info)
{
    out.put_text(info.name);
    for (const int n : {info.ordinal, info.compute_capability, info.multiprocessors, info.driver_version})
        out.put(static_cast<std::int32_t>(n));
}

bool get_hardware(decoder& in, hardware_info& info)
{
    if (!in.get_text(info.name) || !in.get(info.ordinal) || !in.get(info.compute_capability) ||
        !in.get(info.multiprocessors) || !in.get(info.driver_version))
        return false;
    info.name = detail::escape_text(info.name);
    return true;
}

} // namespace coaccel::worker
