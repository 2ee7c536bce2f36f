#include "context/faults/op_problem.hpp"
#include "jit/registry.hpp"
#include "worker/parent/remote_context.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

#include <algorithm>
#include <cstring>

// Transfers the callers' memory and compiled kernels to the worker.
namespace coaccel::worker {

using detail::request;
using direction = transfer_view::direction;

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

void remote_context::start_copy(request& r, const transfer_view& v)
{
    // An empty transfer, or one that the op's own check rejects, needs no memory. Unless its request also allocates, it
    // completes here with the result of that check.
    const bool sound = v.count > 0 && r.ops.back().info->check(r.ops.back().op) == error_code{};
    const bool allocates = r.ops.size() > 1;
    if (!sound && !allocates)
        return events_.finished(r, r.ops.back().info->check(r.ops.back().op));
    if (!allocates)
        // A transfer has one operand.
        if (auto ec = buffers_.check(v.ref, v.type, setup_.identity))
            return events_.finished(
                r, detail::operand_error(r.ops.back(), 0, errc_of(ec), setup_.identity, buffers_.facts(v.ref)));
    if (v.host)
        if (const auto offset = setup_.memory->offset_of(v.host, v.bytes())) {
            const bool into = v.way == direction::to_host;
            into_pinned_ += into;
            return send(r, {.who = &r, .into_pinned = into}, &v, *offset);
        }
    if (v.bytes() <= chunked_copy::small && start_small(r, v))
        return;
    copy& c = copies_.emplace_back();
    c.who = &r;
    c.what = v;
    c.state = {v.bytes(), chunked_copy::piece_for(v.bytes(), setup_.memory->bytes())};
    if (allocates) {
        c.allocating = true;
        return send(r, {.allocation_of = &c}, nullptr, 0);
    }
    if (!v.host) {
        // Making room for a large amount takes time, so a copy thread does it.
        c.has_room = false;
        c.token.of_copy = &c;
        ++copying_;
        copy_jobs_.run([&c] { c.what.host = c.what.sink.room(c.what.sink.object, c.what.bytes()); }, &c.token,
                       wake_up());
        return;
    }
    go_on(c);
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
    if (!f.small || f.small->way != direction::to_host)
        return;
    const std::byte* memory = setup_.memory->at(*f.block);
    const transfer_view& v = *f.small;
    if (v.host)
        std::memcpy(v.host, memory, v.bytes());
    else
        v.sink.append(v.sink.object, memory, v.bytes());
}

void remote_context::go_on(copy& c)
{
    if (c.allocating || !c.has_room || dying_)
        return;
    while (const auto next = c.state.next()) {
        if (const auto block = setup_.memory->take(next->bytes))
            begin_piece(c, *next, *block);
        // Pinned buffers may have left no room for a large piece.
        else if (!c.state.use_smaller_chunks())
            return;
    }
}

void remote_context::begin_piece(copy& c, const chunked_copy::piece& part, std::uint64_t block)
{
    c.state.begun(part);
    piece& p = pieces_.emplace_back();
    p.self = std::prev(pieces_.end());
    p.of = &c;
    p.part = part;
    p.block = block;
    p.token.of_piece = &p;
    if (c.what.way == direction::to_host)
        return send_piece(p);
    ++copying_;
    copy_jobs_.run([to = setup_.memory->at(block), from = static_cast<std::byte*>(c.what.host) + part.offset,
                    n = part.bytes] { std::memcpy(to, from, n); },
                   &p.token, wake_up());
}

void remote_context::send_piece(piece& p)
{
    const transfer_view& v = p.of->what;
    const std::uint64_t element = size_of(v.type);
    op_frame frame;
    frame.what = v.way == direction::to_device ? op_kind::write : op_kind::read;
    frame.ref = v.ref;
    frame.ref.offset += p.part.offset / element;
    frame.ref.size = p.part.bytes / element;
    frame.offset = p.block;
    frame.count = frame.ref.size;
    frame.type = v.type;
    out_.clear();
    put_submit_head(out_, enlist({.part = &p}), p.of->who->options, next_injected_fault(p.part.offset == 0 ? 1 : 0), 1);
    put_op(out_, frame);
    p.of->state.sent(p.part);
    post(out_.record());
}

bool remote_context::take_copied()
{
    copy_jobs_.take_done(copied_);
    for (void* t : copied_) {
        --copying_;
        auto& done = *static_cast<copy_token*>(t);
        if (done.of_copy) {
            copy& c = *done.of_copy;
            c.has_room = true;
            if (!c.what.host)
                c.state.fail(errc::out_of_memory);
            go_on(c);
            finish_if_over(c);
            continue;
        }
        piece& p = *done.of_piece;
        if (p.of->what.way == direction::to_device && !p.of->state.error() && !dying_)
            send_piece(p);
        else
            piece_over(p, {});
    }
    return !copied_.empty();
}

void remote_context::piece_over(piece& p, const error_code& ec)
{
    copy& c = *p.of;
    setup_.memory->give_back(p.block);
    pieces_.erase(p.self);
    c.state.ended(ec);
    go_on(c);
    finish_if_over(c);
}

void remote_context::finish_if_over(copy& c)
{
    // While the context is dying, `die` completes all requests together.
    if (dying_ || c.allocating || !c.has_room || !c.state.over())
        return;
    request& r = *c.who;
    const error_code ec = c.state.error();
    copies_.remove_if([&](const copy& other) { return &other == &c; });
    events_.finished(r, ec);
}

void remote_context::go_on_with_all()
{
    for (auto i = copies_.begin(); i != copies_.end() && !dying_;) {
        copy& c = *i++;
        go_on(c);
        finish_if_over(c);
    }
    if (!held_.empty() && !dying_)
        let_go_of_held();
}

error_code remote_context::send_images(const request& r)
{
    for (const bound_op& o : r.ops)
        if (const auto kernel = kernel_of(o))
            if (auto ec = send_image(kernel))
                return ec;
    return {};
}

error_code remote_context::send_image(std::uint64_t kernel)
{
    if (images_.has(kernel))
        return {};
    const auto image = jit::find_image(kernel);
    // The worker reports the error for a kernel that no longer exists.
    if (!image)
        return {};
    if (auto ec = images_.check(*image))
        return ec;
    if (images_.size() > 2 * images_kept_ + 64 || !images_.has_room_for(*image))
        forget_images();
    if (!images_.has_room_for(*image))
        return images_.full(*image);
    images_.add(*image);
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
        out_.clear();
        put_image(out_, f);
        post(out_.record());
        at += f.part.size();
    } while (at < code.size());
    return {};
}

/// There is no notification when a kernel is destroyed, so the ids are scanned when there are many new ones or no room.
void remote_context::forget_images()
{
    images_.remove_if([this](std::uint64_t id) {
        if (jit::find_image(id))
            return false;
        out_.clear();
        out_.put(message_type::forget);
        out_.put(id);
        post(out_.record());
        return true;
    });
    images_kept_ = images_.size();
}

} // namespace coaccel::worker
