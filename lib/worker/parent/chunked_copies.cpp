#include "worker/parent/chunked_copies.hpp"

#include <algorithm>
#include <cstring>

namespace coaccel::worker {

using detail::request;
using direction = transfer_view::direction;

struct chunked_copies::token {
    copy* of_copy = nullptr;
    piece* of_piece = nullptr;
};

struct chunked_copies::copy {
    request* who = nullptr;
    transfer_view what;
    chunked_copy state;
    /// The buffer is still being allocated.
    bool allocating = false;
    bool has_room = true;
    chunked_copies::token token;
};

struct chunked_copies::piece {
    copy* of = nullptr;
    chunked_copy::piece part;
    std::uint64_t block = 0;
    chunked_copies::token token;
    std::list<piece>::iterator self;
};

chunked_copies::chunked_copies(staging& memory, copy_events& events, const context_end& end, int threads,
                               notification done)
    : memory_(memory), events_(events), end_(end), done_(done), jobs_(threads)
{}

chunked_copies::~chunked_copies() = default;

bool chunked_copies::empty() const noexcept
{
    return copies_.empty();
}

bool chunked_copies::unsent(std::uint32_t slot) const noexcept
{
    return std::ranges::any_of(
        copies_, [slot](const copy& c) { return !c.state.all_sent() && !c.allocating && c.what.ref.slot == slot; });
}

request& chunked_copies::request_of(copy& c) noexcept
{
    return *c.who;
}

chunked_copies::copy& chunked_copies::add(request& r, const transfer_view& v)
{
    copy& c = copies_.emplace_back();
    c.who = &r;
    c.what = v;
    c.state = {v.bytes(), chunked_copy::piece_for(v.bytes(), memory_.bytes())};
    return c;
}

void chunked_copies::start(request& r, const transfer_view& v)
{
    copy& c = add(r, v);
    if (!v.host) {
        // Making room for a large amount takes time, so a copy thread does it.
        c.has_room = false;
        c.token.of_copy = &c;
        ++copying_;
        jobs_.run([&c] { c.what.host = c.what.sink.room(c.what.sink.object, c.what.bytes()); }, &c.token, done_);
        return;
    }
    go_on(c);
}

chunked_copies::copy& chunked_copies::start_after_allocation(request& r, const transfer_view& v)
{
    copy& c = add(r, v);
    c.allocating = true;
    return c;
}

void chunked_copies::allocated(copy& c, const error_code& ec)
{
    c.allocating = false;
    if (ec) {
        c.state.fail(ec);
    } else {
        c.who->prepare(c.who->ops.size() - 1);
        c.what.ref = view_transfer(c.who->ops.back())->ref;
    }
    go_on(c);
    finish_if_over(c);
}

void chunked_copies::go_on(copy& c)
{
    if (c.allocating || !c.has_room || end_.dying())
        return;
    while (const auto next = c.state.next()) {
        if (const auto block = memory_.take(next->bytes))
            begin_piece(c, *next, *block);
        // Pinned buffers may have left no room for a large piece.
        else if (!c.state.use_smaller_chunks())
            return;
    }
}

void chunked_copies::begin_piece(copy& c, const chunked_copy::piece& part, std::uint64_t block)
{
    c.state.begun(part);
    piece& p = pieces_.emplace_back();
    p.self = std::prev(pieces_.end());
    p.of = &c;
    p.part = part;
    p.block = block;
    p.token.of_piece = &p;
    if (c.what.way == direction::to_host)
        return send(p);
    ++copying_;
    jobs_.run([to = memory_.at(block), from = static_cast<std::byte*>(c.what.host) + part.offset,
               n = part.bytes] { std::memcpy(to, from, n); },
              &p.token, done_);
}

void chunked_copies::send(piece& p)
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
    p.of->state.sent(p.part);
    events_.send_piece({.what = p, .of = *p.of->who, .frame = frame, .first = p.part.offset == 0});
}

void chunked_copies::replied(piece& p, const error_code& ec)
{
    const copy& c = *p.of;
    if (ec || c.what.way == direction::to_device)
        return piece_over(p, ec);
    ++copying_;
    jobs_.run([to = static_cast<std::byte*>(c.what.host) + p.part.offset, from = memory_.at(p.block),
               n = p.part.bytes] { std::memcpy(to, from, n); },
              &p.token, done_);
}

bool chunked_copies::take_copied()
{
    jobs_.take_done(copied_);
    for (void* t : copied_) {
        --copying_;
        auto& done = *static_cast<token*>(t);
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
        if (p.of->what.way == direction::to_device && !p.of->state.error() && !end_.dying())
            send(p);
        else
            piece_over(p, {});
    }
    return !copied_.empty();
}

void chunked_copies::piece_over(piece& p, const error_code& ec)
{
    copy& c = *p.of;
    memory_.give_back(p.block);
    pieces_.erase(p.self);
    c.state.ended(ec);
    go_on(c);
    finish_if_over(c);
}

void chunked_copies::finish_if_over(copy& c)
{
    if (end_.dying() || c.allocating || !c.has_room || !c.state.over())
        return;
    request& r = *c.who;
    const error_code ec = c.state.error();
    copies_.remove_if([&](const copy& other) { return &other == &c; });
    events_.copied(r, ec);
}

void chunked_copies::go_on()
{
    for (auto i = copies_.begin(); i != copies_.end() && !end_.dying();) {
        copy& c = *i++;
        go_on(c);
        finish_if_over(c);
    }
}

void chunked_copies::take_all(const std::function<void(request&)>& function)
{
    for (const copy& c : copies_)
        function(*c.who);
    copies_.clear();
}

void chunked_copies::give_back_memory() noexcept
{
    for (const piece& p : pieces_)
        memory_.give_back(p.block);
    pieces_.clear();
}

} // namespace coaccel::worker
