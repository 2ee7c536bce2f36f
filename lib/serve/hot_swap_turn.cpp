#include "serve/hot_swap_turn.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/error.hpp>

#include <new>
#include <utility>

// The turns of a hot_swap: they carry out the actions of its version_switch.
namespace coaccel::detail {
namespace {

/// The kind of an error for the caller of a load; errc::start_failed for an error of another library, to which no
/// message can be added.
errc kind_of(const error_code& ec) noexcept
{
    const errc e = errc_of(ec);
    return e == errc{} ? errc::start_failed : e;
}

serve::swap_event event_of(serve::swap_change what, version_switch::number n, std::string name, error_code reason,
                           std::string message)
{
    return {what, n, std::move(name), reason, std::move(message)};
}

} // namespace

/// Preconditions: the lock is held.
std::string hot_swap_core::label(number n) const
{
    std::string text = "version " + std::to_string(n);
    if (const auto found = records_.find(n); found != records_.end() && !found->second.name.empty())
        text += " (" + found->second.name + ")";
    return text;
}

void hot_swap_core::turn()
{
    for (;;) {
        // Destroyed without the lock, together with what the action has left over.
        job j;
        if (!prepare(j))
            return;
        perform(j);
    }
}

/// Takes the next action. False: there is none, and the turn has ended.
bool hot_swap_core::prepare(job& j)
{
    const std::scoped_lock lock(mutex_);
    const auto now = clock::now();
    versions_.advance(now);
    const auto next = versions_.next_action();
    if (!next) {
        if (versions_.stopped() || executor_.wait_until(versions_.next_time(), now, *this))
            in_turn_ = false;
        else
            executor_.post_turn(turn_function{shared_from_this()});
        return false;
    }
    j.what = *next;
    const number n = next->version;
    using kind = version_switch::action_kind;
    if (next->what == kind::stopped) {
        stops_.move_all(j.stops);
        // Nothing needs the timer; it may be set, and keeps the executor running.
        executor_.cancel_timer();
        executor_.end(device_executor::work::stopping);
        j.self = std::move(self_);
        return true;
    }
    const auto found = records_.find(n);
    record& r = found->second;
    j.label = label(n);
    j.name = r.name;
    j.maker = r.maker;
    j.version = r.what;
    switch (next->what) {
    case kind::load_ended: prepare_load_end(j, r); break;
    case kind::rolled_back: prepare_rollback(j, r); break;
    case kind::confirmed:
        ++counters_.confirmed;
        j.event = event_of(serve::swap_change::confirmed, n, r.name, {}, j.label + " is confirmed");
        break;
    case kind::overdue:
        ++counters_.overdue;
        r.overdue = true;
        break;
    case kind::closed:
        j.event = event_of(serve::swap_change::closed, n, r.name,
                           r.overdue ? make_error_code(errc::deadline_exceeded) : error_code(),
                           j.label + (r.overdue ? " was shut down after drain_limit" : " was shut down"));
        j.level = r.overdue ? log_level::warning : log_level::info;
        break;
    case kind::release: records_.erase(found); break;
    case kind::load:
    case kind::warm_up:
    case kind::cancel_work:
    case kind::close:
    case kind::stopped: break;
    }
    return true;
}

void hot_swap_core::prepare_load_end(job& j, record& r)
{
    using load_end = version_switch::load_end;
    const bool loading = j.what.during != serve::version_state::warming_up;
    std::string text = j.label;
    error_code ec;
    switch (j.what.end) {
    case load_end::switched:
        ++counters_.switches;
        text += " answers requests";
        break;
    case load_end::failed:
        text += (loading ? ": loading failed: " : ": the warm-up failed: ") + r.load_error.message();
        ec = op_error(kind_of(r.load_error), options_.name, {text});
        j.level = log_level::warning;
        break;
    case load_end::late:
        text += loading ? ": loading took longer than load_limit" : ": the warm-up took longer than warm_up_limit";
        ec = op_error(errc::deadline_exceeded, options_.name, {text});
        j.level = log_level::warning;
        break;
    case load_end::cancelled:
        text += ": the load was cancelled";
        ec = asio::error::operation_aborted;
        break;
    case load_end::stopped:
        text += ": the hot_swap has been stopped";
        ec = op_error(errc::actor_stopped, options_.name, {text});
        break;
    }
    if (ec)
        ++(j.what.end == load_end::cancelled ? counters_.loads_cancelled : counters_.loads_failed);
    j.event = event_of(ec ? serve::swap_change::load_failed : serve::swap_change::switched, j.what.version, r.name, ec,
                       std::move(text));
    // The functions are no longer needed, and may own much memory.
    r.maker = nullptr;
    j.op = std::exchange(r.op, nullptr);
    loads_.remove(*j.op);
    j.op->ec = ec;
}

void hot_swap_core::prepare_rollback(job& j, const record& r)
{
    const bool by_rule = j.what.requests > 0;
    ++(by_rule ? counters_.rolled_back_by_rule : counters_.rolled_back_by_hand);
    std::string why = j.label + " was rolled back";
    if (by_rule)
        why += ": " + std::to_string(j.what.failures) + " of the last " + std::to_string(j.what.requests) +
               " requests failed, the last of them with: " + r.last_failure.message();
    j.event = event_of(serve::swap_change::rolled_back, j.what.version, r.name, by_rule ? r.last_failure : error_code(),
                       std::move(why));
    j.level = by_rule ? log_level::warning : log_level::info;
    counters_.last_rollback = *j.event;
}

void hot_swap_core::perform(job& j)
{
    using kind = version_switch::action_kind;
    const number n = j.what.version;
    notify(j);
    switch (j.what.what) {
    case kind::load: try { j.maker->load(shared_from_this(), n);
        } catch (...) {
            loaded(n, version_function_failed(std::current_exception()), nullptr);
        }
        return;
    case kind::warm_up:
        try {
            if (!j.maker->warm_up(shared_from_this(), n, j.version))
                warmed_up(n, {});
        } catch (...) {
            warmed_up(n, version_function_failed(std::current_exception()));
        }
        return;
    case kind::cancel_work: return j.maker->cancel();
    case kind::load_ended: return j.op->post();
    case kind::close: try { j.version->close(j.what.mode, version_closed(shared_from_this(), n));
        } catch (...) {
            // The handler is destroyed, which counts as the end of the shutdown.
        }
        return;
    case kind::stopped: return j.stops.post_all();
    case kind::confirmed:
    case kind::rolled_back:
    case kind::overdue:
    case kind::closed:
    case kind::release: return;
    }
}

void hot_swap_core::notify(const job& j) const noexcept
{
    if (!j.event)
        return;
    const auto note = [this](log_level level, const std::string& text) noexcept {
        try {
            if (log_enabled(level))
                log(level, "hot_swap " + options_.name + ": " + text);
        } catch (const std::bad_alloc&) {
            // The event is also in the statistics.
        }
    };
    note(j.level, j.event->message);
    try {
        if (options_.on_event)
            options_.on_event(*j.event);
    } catch (...) {
        note(log_level::warning, "on_event threw an exception");
    }
}

} // namespace coaccel::detail
