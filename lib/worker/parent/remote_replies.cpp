#include "context/faults/op_problem.hpp"
#include "posix/fork_detector.hpp"
#include "worker/parent/remote_context.hpp"

#include <algorithm>
#include <cstring>
#include <string>

// Handles replies from the worker, and the end of the worker.
namespace coaccel::worker {

using detail::clock;
using detail::next_turn;
using detail::request;

namespace {

constexpr auto room_interval = std::chrono::milliseconds(1);

} // namespace

std::uint64_t remote_context::enlist(const in_flight_request& f)
{
    const std::uint64_t id = in_flight_.add(f);
    if (in_flight_.size() == 1 && f.who)
        estimator_.sent(id, *f.who);
    return id;
}

void remote_context::post(std::span<const std::byte> record)
{
    if (waiting_.empty()) {
        const written w = link_->requests().write(record);
        if (w == written::corrupted)
            condemn(errc::worker_corrupted);
        if (w == written::yes)
            link_->wake_worker();
        if (w != written::full)
            return;
    }
    waiting_.emplace_back(record.begin(), record.end());
}

/// Returns whether any record that waited for room was written.
bool remote_context::flush()
{
    bool any = false;
    for (; !waiting_.empty() && !dying_; waiting_.pop_front()) {
        const written w = link_->requests().write(waiting_.front());
        if (w == written::full)
            break;
        if (w == written::corrupted) {
            condemn(errc::worker_corrupted);
            return true;
        }
        any = true;
    }
    if (any)
        link_->wake_worker();
    return any;
}

next_turn remote_context::turn(clock::time_point now, clock::duration patience)
{
    if (dead_)
        return {};
    now_ = now;
    if (detail::forked())
        condemn(errc::context_lost);
    const bool spins = setup_.spin.count() > 0;
    if (now - std::max(last_look_, last_moved_) >= detail::duration_estimator::attention)
        looking_ = false;
    // Checked first: replies that the worker wrote before it ended still count.
    const bool over = link_->is_doomed();
    const bool stays = spins && !over && patience > clock::duration::zero();
    const auto until = stays ? clock::now() + patience : now;
    bool moved = false;
    do {
        moved |= take_copied();
        moved |= take_replies();
        moved |= flush();
    } while (stays && !moved && !dying_ && awaits_replies() && !events_.has_more() && (now_ = clock::now()) < until);
    last_look_ = now = now_;
    go_on_with_all();
    if (over && !dying_)
        condemn({});
    if (reply_watch_.look(awaits_replies(), moved, now) && !dying_)
        condemn(
            errc::worker_hung,
            "no reply for " +
                std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(reply_watch_.limit()).count()) +
                " ms while operations are in flight");
    if (dying_)
        return die();
    if (!busy()) {
        looking_ = true;
        watch_->disarm();
        return {};
    }
    if (moved)
        last_moved_ = now;
    const auto next = rule_.decide(true, moved, now, spins ? estimator_.next() : detail::wait_policy::expected_end());
    if (keep_looking(now, next))
        return {next_turn::kind::again};
    link_->reply_bell().clear();
    if (!link_->replies().may_sleep() || link_->is_doomed())
        return {next_turn::kind::again};
    watch_->arm();
    // A worker does not signal that the request ring has room again.
    const auto room_at = waiting_.empty() ? clock::time_point::max() : now + room_interval;
    return {next_turn::kind::sleep, std::min({next.look_at, room_at, reply_watch_.next_look()})};
}

bool remote_context::keep_looking(clock::time_point now, const detail::wait_policy::decision& next) noexcept
{
    using action = detail::wait_policy::action;
    const bool before = std::exchange(looking_, next.what == action::poll || next.what == action::arm_and_poll ||
                                                    now - last_moved_ < setup_.spin);
    if (next.due)
        estimator_.due();
    if (looking_ && !before) {
        looking_since_ = now;
        link_->replies().awake();
    }
    if (looking_)
        give_way(now - std::max(looking_since_, last_moved_));
    return looking_;
}

bool remote_context::take_replies()
{
    bool any = false;
    while (!dying_) {
        auto got = link_->replies().read(record_);
        if (!got) {
            condemn(errc::worker_corrupted);
            break;
        }
        if (!got.value())
            break;
        any = true;
        if (!on_reply(record_))
            condemn(errc::worker_corrupted);
    }
    if (any)
        link_->replies().awake();
    return any;
}

bool remote_context::on_reply(std::span<const std::byte> record)
{
    decoder in(record);
    message_type what{};
    if (!in.get(what, message_type::ended, message_type::lost))
        return false;
    if (what == message_type::ended)
        return on_ended(in);
    if (what == message_type::unsupported)
        return on_unsupported(in);
    error_code why;
    if (!in.get_error(why) || !in.at_end() || !why)
        return false;
    // No caller can break a context; a caller error as the reason would make the device fail permanently.
    if (is_caller_error(why))
        return false;
    link_->log(log_level::info, "lost its context: " + why.message());
    why_ = why;
    condemn(errc::context_lost);
    return true;
}

bool remote_context::on_ended(decoder& in)
{
    std::uint64_t id = 0;
    error_code ec;
    if (!in.get(id) || !in.get_error(ec))
        return false;
    const in_flight_request* const awaited = in_flight_.find(id);
    if (!awaited)
        return false;
    const in_flight_request f = *awaited;
    request* const r = f.who ? f.who : f.allocation_of ? f.allocation_of->who : nullptr;
    if (r && !take_results(in, *r, f.allocation_of ? 1 : r->ops.size(), !ec))
        return false;
    if (!in.at_end())
        return false;
    // The reply is valid only from here on.
    remove(id, f);
    if (f.part) {
        piece& p = *f.part;
        copy& c = *p.of;
        if (!ec && c.what.way == transfer_view::direction::to_host) {
            ++copying_;
            copy_jobs_.run([to = static_cast<std::byte*>(c.what.host) + p.part.offset,
                            from = setup_.memory->at(p.block), n = p.part.bytes] { std::memcpy(to, from, n); },
                           &p.token, wake_up());
        } else {
            piece_over(p, ec);
        }
        return true;
    }
    if (f.allocation_of) {
        copy& c = *f.allocation_of;
        c.allocating = false;
        if (ec) {
            c.state.fail(ec);
        } else {
            c.who->prepare(c.who->ops.size() - 1);
            c.what.ref = view_transfer(c.who->ops.back())->ref;
        }
        go_on(c);
        finish_if_over(c);
        return true;
    }
    if (!ec)
        deliver(f);
    finish(f, ec);
    return true;
}

bool remote_context::on_unsupported(decoder& in)
{
    std::uint64_t id = 0;
    std::uint32_t i = 0;
    if (!in.get(id) || !in.get(i) || !in.at_end())
        return false;
    const in_flight_request* const awaited = in_flight_.find(id);
    if (!awaited || awaited->part || !awaited->who || i >= awaited->who->ops.size())
        return false;
    const in_flight_request f = *awaited;
    remove(id, f);
    finish(f, detail::placed(*f.who, i, detail::not_implemented(*f.who->ops[i].info, backend_name())));
    return true;
}

void remote_context::remove(std::uint64_t id, const in_flight_request& f)
{
    (void)in_flight_.take(id);
    if (estimator_.is_about(id))
        estimator_.ended(now_, looking_);
    into_pinned_ -= f.into_pinned;
}

void remote_context::finish(const in_flight_request& f, const error_code& ec)
{
    if (f.block)
        setup_.memory->give_back(*f.block);
    f.who->ended = now_;
    events_.finished(*f.who, ec);
}

bool remote_context::take_results(decoder& in, request& r, std::size_t ops, bool succeeded)
{
    if (!succeeded && in.at_end())
        return true;
    for (std::size_t i = 0; i < ops; ++i) {
        bound_op& o = r.ops[i];
        if (o.info->role == op_role::allocate) {
            const auto& wanted = o.as<detail::allocate_op>();
            any_ref made;
            if (!in.get_ref(made))
                return false;
            if (made.device == 0 && !succeeded)
                continue;
            if (made.device != setup_.identity.device || made.generation != setup_.identity.generation ||
                made.offset != 0 || made.size != wanted.count || made.type != wanted.type)
                return false;
            // The worker reuses a slot only after it was released.
            if (!buffers_.add(made))
                return false;
            *static_cast<detail::allocation*>(o.reply) = {made, nullptr};
            ++live_buffers_;
        } else if (succeeded && !view_transfer(o) && !take_reply(in, o)) {
            return false;
        }
    }
    return true;
}

/// A rejected reply is never read by the caller, because its op fails with the context.
bool remote_context::take_reply(decoder& in, bound_op& o)
{
    std::span<const std::byte> bytes;
    if (!in.get_bytes(o.info->reply_size, bytes))
        return false;
    if (!o.reply || bytes.empty())
        return true;
    std::memcpy(o.reply, bytes.data(), bytes.size());
    if (!o.info->accepts || o.info->accepts(o.op, o.reply))
        return true;
    condemn(errc::worker_corrupted, "an impossible reply to " + o.info->name);
    return false;
}

// --- the end ------------------------------------------------------------------------------------------------------

/// Without an error code: the process has ended by itself, and the link knows the reason.
void remote_context::condemn(errc why) noexcept
{
    if (std::exchange(dying_, true))
        return;
    if (detail::forked()) {
        why_ = errc::context_lost;
        return;
    }
    rogue_ = why == errc::worker_corrupted;
    if (why != errc{})
        link_->end(why);
    if (!why_)
        why_ = link_->reason();
}

void remote_context::condemn(errc why, const std::string& text) noexcept
{
    if (!dying_ && !why_ && !detail::forked())
        why_ = make_error_with_message(why, "worker " + std::to_string(link_->process()) + ": " + text);
    condemn(why);
}

next_turn remote_context::die()
{
    // The dying process may still write to pinned buffers, and our copy threads to other memory of the callers. A
    // worker that sent invalid data may write anywhere in the memory that its successor will use.
    const bool writing = (into_pinned_ > 0 || rogue_) && !link_->has_ended();
    // A forked child has no copy threads, and all its memory except the pinned memory is private.
    if ((copying_ > 0 || writing) && !detail::forked())
        return {next_turn::kind::sleep};
    dead_ = true;
    watch_->disarm();
    take_all([this](request& r) { events_.finished(r, errc::context_lost); });
    events_.lost(why_);
    return {};
}

void remote_context::take_all(const std::function<void(request&)>& function)
{
    // The entries stay: their memory is given back when the process has ended.
    in_flight_.for_each([&](in_flight_request& f) {
        if (f.who)
            function(*std::exchange(f.who, nullptr));
    });
    for (copy& c : copies_)
        function(*c.who);
    copies_.clear();
    for (const held& h : held_)
        if (h.who)
            function(*h.who);
    held_.clear();
}

void remote_context::drop(detail::async_op_list& out) noexcept
{
    dying_ = dead_ = true;
    watch_->stop();
    if (!detail::forked()) {
        copy_jobs_.stop();
        link_->end(errc::worker_exited);
        link_->wait_for_end();
    }
    take_all([&](request& r) { out.push_back(r); });
}

memory_info remote_context::memory() const noexcept
{
    const gauges& g = link_->now();
    memory_info m;
    m.used = g.used.load(std::memory_order_relaxed);
    m.free = g.free.load(std::memory_order_relaxed);
    m.total = g.total.load(std::memory_order_relaxed);
    m.reserved = g.reserved.load(std::memory_order_relaxed);
    m.high_water = g.high_water.load(std::memory_order_relaxed);
    m.library_objects = g.library_objects.load(std::memory_order_relaxed);
    m.pinned_used = setup_.memory->pinned();
    m.pinned_reserved = setup_.memory->bytes();
    return m;
}

} // namespace coaccel::worker
