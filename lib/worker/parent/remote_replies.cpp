#include "context/faults/op_problem.hpp"
#include "posix/fork_detector.hpp"
#include "worker/parent/remote_context.hpp"

#include <coaccel/plan/detail/plan_ops.hpp>

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
        polling_.sent_alone(id, *f.who);
    return id;
}

next_turn remote_context::turn(clock::time_point now, clock::duration patience)
{
    if (end_.dead())
        return {};
    now_ = now;
    if (detail::forked())
        condemn(errc::context_lost);
    polling_.begin_turn(now);
    // Checked first: replies that the worker wrote before it ended still count.
    const bool over = link_->is_doomed();
    const bool stays = polling_.spins() && !over && patience > clock::duration::zero();
    const auto until = stays ? clock::now() + patience : now;
    bool moved = false;
    do {
        moved |= copies_.take_copied();
        moved |= take_replies();
        moved |= !end_.dying() && outgoing_.flush();
    } while (stays && !moved && !end_.dying() && awaits_replies() && !events_.has_more() &&
             (now_ = clock::now()) < until);
    now = now_;
    continue_copies();
    if (over && !end_.dying())
        condemn({}, link_->cause());
    if (reply_watch_.look(awaits_replies(), moved, now) && !end_.dying())
        condemn(
            errc::worker_hung,
            "no reply for " +
                std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(reply_watch_.limit()).count()) +
                " ms while operations are in flight");
    if (end_.dying())
        return die();
    if (!busy()) {
        polling_.idle(now);
        watch_->disarm();
        return {};
    }
    const auto next = polling_.end_turn(moved, now);
    if (next.awake)
        link_->replies().awake();
    if (next.poll) {
        give_way(next.looked_for);
        return {next_turn::kind::again};
    }
    link_->reply_bell().clear();
    if (!link_->replies().may_sleep() || link_->is_doomed())
        return {next_turn::kind::again};
    watch_->arm();
    // A worker does not signal that the request ring has room again.
    const auto room_at = outgoing_.waiting() ? now + room_interval : clock::time_point::max();
    return {next_turn::kind::sleep, std::min({next.look_at, room_at, reply_watch_.next_look()})};
}

void remote_context::continue_copies()
{
    copies_.go_on();
    if (held_.empty() || end_.dying())
        return;
    held_.let_go(
        setup_.identity.device, [this](request& r) { start(r); }, [this](const any_ref& b) { send_release(b); });
}

bool remote_context::take_replies()
{
    bool any = false;
    while (!end_.dying()) {
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
    end_.explain(why);
    condemn(errc::context_lost, is_device_lost(why) ? detail::loss_cause::hardware : detail::loss_cause::fault);
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
    request* const r = f.who ? f.who : f.allocation_of ? &chunked_copies::request_of(*f.allocation_of) : nullptr;
    if (f.memory ? !take_memory(in, id, *r, ec) : r && !take_results(in, *r, f.allocation_of ? 1 : r->ops.size(), !ec))
        return false;
    if (!in.at_end())
        return false;
    // The reply is valid only from here on.
    remove(id);
    if (f.part) {
        copies_.replied(*f.part, ec);
        return true;
    }
    if (f.allocation_of) {
        copies_.allocated(*f.allocation_of, ec);
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
    remove(id);
    finish(f, detail::placed(*f.who, i, detail::not_implemented(*f.who->ops[i].info, backend_name())));
    return true;
}

void remote_context::remove(std::uint64_t id)
{
    (void)in_flight_.take(id);
    polling_.replied(id, now_);
}

void remote_context::finish(const in_flight_request& f, const error_code& ec)
{
    if (f.block)
        setup_.memory->give_back(*f.block);
    f.who->ended = now_;
    complete(*f.who, ec);
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
            if (!add_made(made, wanted.count, wanted.type))
                return false;
            *static_cast<detail::allocation*>(o.reply) = {made, nullptr};
        } else if (succeeded && !view_transfer(o) && !take_reply(in, o)) {
            return false;
        }
    }
    return true;
}

/// Returns false for a ref that the worker cannot have made for this request.
bool remote_context::add_made(const any_ref& made, std::uint64_t count, dtype type)
{
    // The worker reuses a slot only after it was released.
    return made.device == setup_.identity.device && made.generation == setup_.identity.generation && made.offset == 0 &&
           made.size == count && made.type == type && buffers_.add(made);
}

/// A run has a reply only if the worker has measured it.
bool remote_context::take_measured_time(decoder& in, const bound_op& o)
{
    detail::plan_ran ran;
    if (!in.at_end() && !in.get(ran.nanoseconds))
        return false;
    if (o.reply)
        *static_cast<detail::plan_ran*>(o.reply) = ran;
    return true;
}

/// A rejected reply is never read by the caller, because its op fails with the context.
bool remote_context::take_reply(decoder& in, bound_op& o)
{
    std::span<const std::byte> bytes;
    if (o.info->id == info_of<detail::plan_run_op>().id)
        return take_measured_time(in, o);
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

namespace {

context_end::process this_process() noexcept
{
    return detail::forked() ? context_end::process::forked_child : context_end::process::own;
}

} // namespace

/// Without an error code: the process has ended by itself, and the link knows the reason.
void remote_context::condemn(errc why, detail::loss_cause cause) noexcept
{
    if (!end_.begin(why, this_process(), cause))
        return;
    if (why != errc{})
        link_->end(why);
    if (!end_.reason())
        end_.explain(link_->reason());
}

void remote_context::condemn(errc why, const std::string& text) noexcept
{
    if (!end_.dying() && !end_.reason() && !detail::forked())
        end_.explain(make_error_with_message(why, "worker " + std::to_string(link_->process()) + ": " + text));
    condemn(why);
}

void remote_context::abandon(const std::string& why) noexcept
{
    if (!end_.dying() && !end_.reason() && !detail::forked())
        end_.explain(make_error_with_message(errc::context_lost, why));
    condemn(errc::context_lost, detail::loss_cause::outside);
}

next_turn remote_context::die()
{
    const context_end::writers writers{.copying = copies_.copying(),
                                       .into_shared = shares_writable_ || writes_to_pinned(),
                                       .worker = !link_->has_ended()};
    if (end_.must_wait(writers, this_process()))
        return {next_turn::kind::sleep};
    end_.finish();
    watch_->disarm();
    take_all([this](request& r) { events_.finished(r, errc::context_lost); });
    events_.lost(end_.reason(), end_.cause());
    return {};
}

bool remote_context::writes_to_pinned()
{
    bool any = false;
    in_flight_.for_each([&any](const in_flight_request& f) { any |= f.into_pinned; });
    return any;
}

void remote_context::take_all(const std::function<void(request&)>& function)
{
    // The parts of a split request stay with `splits_`, which has the request itself.
    const auto take = [&](request& r) {
        if (!splits_.is_part(r))
            function(r);
    };
    // The entries stay: their memory is given back when the process has ended.
    in_flight_.for_each([&](in_flight_request& f) {
        if (f.who)
            take(*std::exchange(f.who, nullptr));
    });
    copies_.take_all(take);
    held_.take_all(take);
    splits_.take_all(function);
}

void remote_context::drop(detail::async_op_list& out) noexcept
{
    end_.finish();
    watch_->stop();
    if (!detail::forked()) {
        copies_.stop();
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
