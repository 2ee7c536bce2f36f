#include "worker/parent/kernel_sender.hpp"

#include "jit/registry.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

#include <algorithm>

namespace coaccel::worker {
namespace {

constexpr std::size_t image_part = std::size_t(24) << 10;
// A part with the longest name and symbol and the numbers still fits into a record of the ring.
static_assert(image_part + 2 * longest_text + 64 <= max_ring_record(ring_bytes));

/// The kernel that an op names; zero if none.
std::uint64_t kernel_of(const bound_op& op) noexcept
{
    if (op.info->id == jit::launch_op_id)
        return op.as<jit::launch_head>().kernel;
    return op.info->id == info_of<jit::occupancy_op>().id ? op.as<jit::occupancy_op>().kernel : 0;
}

} // namespace

error_code kernel_sender::send(const detail::request& r)
{
    for (const bound_op& o : r.ops)
        if (const auto kernel = kernel_of(o))
            if (auto ec = send(kernel))
                return ec;
    return {};
}

error_code kernel_sender::send(std::span<const detail::listed_op> ops)
{
    for (const detail::listed_op& o : ops)
        if (const auto kernel = kernel_of({.info = o.info, .op = o.record.op.data()}))
            if (auto ec = send(kernel))
                return ec;
    return {};
}

error_code kernel_sender::send(std::uint64_t kernel)
{
    if (sent_.has(kernel))
        return {};
    const auto image = jit::find_image(kernel);
    // The worker reports the error for a kernel that no longer exists.
    if (!image)
        return {};
    if (auto ec = sent_.check(*image))
        return ec;
    if (sent_.should_scan_for(*image))
        forget_destroyed();
    if (!sent_.has_room_for(*image))
        return sent_.full(*image);
    sent_.add(*image);
    const auto code = std::as_bytes(std::span(image->code));
    std::size_t at = 0;
    // At least one record: a CPU kernel has no code, but its occupancy can still be queried.
    do {
        image_frame f;
        f.id = image->id;
        f.name = image->name;
        f.symbol = image->symbol;
        f.total = code.size();
        f.offset = at;
        f.part = code.subspan(at, std::min(image_part, code.size() - at));
        put_image(out_.begin(), f);
        out_.post();
        at += f.part.size();
    } while (at < code.size());
    return {};
}

void kernel_sender::forget_destroyed()
{
    sent_.remove_if([this](std::uint64_t id) {
        if (jit::find_image(id))
            return false;
        encoder& out = out_.begin();
        out.put(message_type::forget);
        out.put(id);
        out_.post();
        return true;
    });
}

} // namespace coaccel::worker
