#include "context/faults/op_problem.hpp"
#include "worker/parent/remote_context.hpp"

#include <cstring>

// Transfers the callers' memory to and from the worker.
namespace coaccel::worker {

using detail::request;
using direction = transfer_view::direction;

void remote_context::start_copy(request& r, const transfer_view& v)
{
    // An empty transfer, or one that the op's own check rejects, needs no memory. Unless its request also allocates, it
    // completes here with the result of that check.
    const bool sound = v.count > 0 && r.ops.back().info->check(r.ops.back().op) == error_code{};
    const bool allocates = r.ops.size() > 1;
    if (!sound && !allocates)
        return complete(r, r.ops.back().info->check(r.ops.back().op));
    if (!allocates)
        // A transfer has one operand.
        if (auto ec = buffers_.check(v.ref, v.type, setup_.identity))
            return complete(
                r, detail::operand_error(r.ops.back(), 0, errc_of(ec), setup_.identity, buffers_.facts(v.ref)));
    if (v.host)
        if (const auto offset = setup_.memory->offset_of(v.host, v.bytes())) {
            const bool into = v.way == direction::to_host;
            return send(r, {.who = &r, .into_pinned = into}, &v, *offset);
        }
    if (v.bytes() <= chunked_copy::small && start_small(r, v))
        return;
    if (allocates)
        return send(r, {.allocation_of = &copies_.start_after_allocation(r, v)}, nullptr, 0);
    copies_.start(r, v);
}

/// Small transfers are copied on this thread and sent with their request. Returns false if there is no room.
bool remote_context::start_small(request& r, const transfer_view& v)
{
    const auto block = setup_.memory->take(v.bytes());
    if (!block)
        return false;
    if (v.way == direction::to_device && v.count > 0)
        std::memcpy(setup_.memory->at(*block), v.host, v.bytes());
    send(r, {.who = &r, .block = block, .small = v}, &v, *block);
    return true;
}

void remote_context::deliver(const in_flight_request& f)
{
    if (f.run && f.block)
        return staged_run(f.who->ops.front().as<detail::plan_run_op>(), *setup_.memory).deliver(*f.block);
    if (!f.small || f.small->way != direction::to_host)
        return;
    const std::byte* memory = setup_.memory->at(*f.block);
    const transfer_view& v = *f.small;
    if (v.host)
        std::memcpy(v.host, memory, v.bytes());
    else
        v.sink.append(v.sink.object, memory, v.bytes());
}

} // namespace coaccel::worker
