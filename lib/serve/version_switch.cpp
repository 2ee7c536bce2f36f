#include "serve/version_switch.hpp"

#include "serve/later.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::detail {
namespace {

/// What can become of a version, at most: load, warm_up, cancel_work, load_ended, confirmed, rolled_back, close with
/// drain, close with abandon, overdue, closed, release.
constexpr std::size_t max_actions = 11;

} // namespace

version_switch::version_switch(const serve::hot_swap_options& o)
    : load_limit_(o.load_limit), warm_up_limit_(o.warm_up_limit), drain_limit_(o.drain_limit),
      confirm_after_(o.confirm_after), max_waiting_(o.max_waiting_loads), rule_(o.rollback)
{
    // For `stopped`, without any version.
    actions_.reserve(room_);
}

/// The end of a limit, for which zero means none.
version_switch::time_point version_switch::after(time_point now, std::chrono::nanoseconds limit) noexcept
{
    return limit.count() == 0 ? time_point::max() : later(now, limit);
}

version_switch::version* version_switch::find(number n) noexcept
{
    // Requests ask for the newest versions.
    for (auto v = versions_.rbegin(); v != versions_.rend(); ++v)
        if (v->id == n)
            return &*v;
    return nullptr;
}

/// The next version, for loops in which each step may erase one. Null: there is none.
version_switch::version* version_switch::first_after(number n) noexcept
{
    const auto next = std::ranges::upper_bound(versions_, n, {}, &version::id);
    return next == versions_.end() ? nullptr : &*next;
}

void version_switch::add(const action& a) noexcept
{
    BOOST_ASSERT(actions_.size() < room_);
    actions_.push_back(a);
}

void version_switch::erase(number n) noexcept
{
    std::erase_if(versions_, [n](const version& v) { return v.id == n; });
}

version_switch::admission version_switch::load(number n, time_point now)
{
    BOOST_ASSERT(n != 0 && (versions_.empty() || versions_.back().id < n));
    if (stopping_)
        return admission::stopped;
    if (loading_ != 0 && waiting_ >= max_waiting_)
        return admission::full;
    actions_.erase(actions_.begin(), actions_.begin() + static_cast<std::ptrdiff_t>(std::exchange(first_action_, 0)));
    const std::size_t room = actions_.size() + (versions_.size() + 1) * max_actions + 1;
    actions_.reserve(room);
    if (confirm_after_.count() > 0 && !versions_.empty())
        rule_.reserve();
    versions_.push_back({.id = n});
    room_ = room;
    ++waiting_;
    begin_next_load(now);
    return admission::accepted;
}

void version_switch::begin_next_load(time_point now)
{
    if (loading_ != 0 || waiting_ == 0)
        return;
    version& v = *std::ranges::find(versions_, state::waiting, &version::state);
    --waiting_;
    loading_ = v.id;
    v.state = state::loading;
    v.limit = after(now, load_limit_);
    add({.what = action_kind::load, .version = v.id});
}

bool version_switch::loaded(number n, bool ok, time_point now)
{
    version* const v = find(n);
    if (!v || v->state != state::loading)
        return false;
    if (!ok) {
        end_load(*v, load_end::failed, now);
        return true;
    }
    v->exists = true;
    v->state = state::warming_up;
    v->limit = after(now, warm_up_limit_);
    add({.what = action_kind::warm_up, .version = n});
    return true;
}

void version_switch::warmed_up(number n, bool ok, time_point now)
{
    version* const v = find(n);
    if (!v || v->state != state::warming_up)
        return;
    if (ok)
        switch_to(*v, now);
    else
        end_load(*v, load_end::failed, now);
}

bool version_switch::cancel(number n, time_point now)
{
    version* const v = find(n);
    if (!v || (v->state != state::waiting && v->state != state::loading && v->state != state::warming_up))
        return false;
    end_load(*v, load_end::cancelled, now);
    return true;
}

void version_switch::end_load(version& v, load_end how, time_point now)
{
    const number n = v.id;
    const state during = v.state;
    if (during == state::waiting)
        --waiting_;
    else
        loading_ = 0;
    if (during != state::waiting && how != load_end::failed)
        add({.what = action_kind::cancel_work, .version = n});
    add({.what = action_kind::load_ended, .version = n, .end = how, .during = during});
    if (v.exists) {
        drain(v, now);
    } else {
        add({.what = action_kind::release, .version = n});
        erase(n);
    }
    if (!stopping_)
        begin_next_load(now);
}

void version_switch::switch_to(version& v, time_point now)
{
    const number old = std::exchange(current_, v.id);
    const number older = std::exchange(previous_, 0);
    loading_ = 0;
    v.state = state::current;
    v.limit = time_point::max();
    confirm_at_ = time_point::max();
    add({.what = action_kind::load_ended, .version = v.id, .end = load_end::switched});
    if (older != 0)
        drain(*find(older), now);
    if (old != 0 && confirm_after_.count() > 0) {
        previous_ = old;
        find(old)->state = state::previous;
        confirm_at_ = later(now, confirm_after_);
        rule_.restart();
    } else if (old != 0) {
        drain(*find(old), now);
    }
    begin_next_load(now);
}

version_switch::number version_switch::take() noexcept
{
    if (current_ != 0)
        ++find(current_)->in_flight;
    return current_;
}

void version_switch::ended(number n, outcome how, time_point now)
{
    version* const v = find(n);
    BOOST_ASSERT(v && v->in_flight > 0);
    --v->in_flight;
    if (how != outcome::other && watches(n) && rule_.add(how == outcome::failed, now))
        return return_to_previous(now, rule_.requests(), rule_.failures());
    if (v->in_flight > 0)
        return;
    if (v->state == state::draining) {
        close(*v, shutdown::drain, now);
    } else if (v->state == state::closed) {
        add({.what = action_kind::release, .version = n});
        erase(n);
    }
}

bool version_switch::roll_back(number from, time_point now)
{
    if (previous_ == 0 || (from != 0 && from != current_))
        return false;
    return_to_previous(now, 0, 0);
    return true;
}

void version_switch::return_to_previous(time_point now, std::uint64_t requests, std::uint64_t failures)
{
    const number bad = std::exchange(current_, std::exchange(previous_, 0));
    find(current_)->state = state::current;
    confirm_at_ = time_point::max();
    add({.what = action_kind::rolled_back, .version = bad, .requests = requests, .failures = failures});
    drain(*find(bad), now);
}

bool version_switch::confirm(number which, time_point now)
{
    if (previous_ == 0 || (which != 0 && which != current_))
        return false;
    confirm_current(now);
    return true;
}

void version_switch::confirm_current(time_point now)
{
    confirm_at_ = time_point::max();
    add({.what = action_kind::confirmed, .version = current_});
    drain(*find(std::exchange(previous_, 0)), now);
}

void version_switch::drain(version& v, time_point now)
{
    v.state = state::draining;
    v.limit = after(now, drain_limit_);
    if (v.in_flight == 0 || abandons_)
        close(v, abandons_ ? shutdown::abandon : shutdown::drain, now);
}

void version_switch::close(version& v, shutdown mode, time_point now)
{
    v.state = state::closing;
    v.mode = mode;
    v.limit = after(now, drain_limit_);
    add({.what = action_kind::close, .version = v.id, .mode = mode});
}

void version_switch::closed(number n, time_point)
{
    version* const v = find(n);
    // The end of a shutdown that took too long changes nothing.
    if (v && v->state == state::closing)
        finish_close(*v);
}

void version_switch::finish_close(version& v)
{
    const number n = v.id;
    v.state = state::closed;
    v.limit = time_point::max();
    add({.what = action_kind::closed, .version = n});
    if (v.in_flight == 0) {
        add({.what = action_kind::release, .version = n});
        erase(n);
    }
    check_stopped();
}

void version_switch::note_overdue(version& v)
{
    if (!std::exchange(v.overdue, true))
        add({.what = action_kind::overdue, .version = v.id, .requests = v.in_flight});
}

void version_switch::stop(shutdown mode, time_point now)
{
    abandons_ = abandons_ || mode == shutdown::abandon;
    if (!std::exchange(stopping_, true)) {
        current_ = previous_ = 0;
        confirm_at_ = time_point::max();
    }
    for (version* next = first_after(0); next;) {
        version& v = *next;
        const number n = v.id;
        switch (v.state) {
        case state::waiting:
        case state::loading:
        case state::warming_up: end_load(v, load_end::stopped, now); break;
        case state::current:
        case state::previous: drain(v, now); break;
        case state::draining:
            if (abandons_)
                close(v, shutdown::abandon, now);
            break;
        case state::closing:
            if (abandons_ && v.mode == shutdown::drain)
                close(v, shutdown::abandon, now);
            break;
        case state::closed: break;
        }
        next = first_after(n);
    }
    check_stopped();
}

void version_switch::check_stopped()
{
    if (!stopping_ || stopped_)
        return;
    if (std::ranges::any_of(versions_, [](const version& v) { return v.state != state::closed; }))
        return;
    stopped_ = true;
    add({.what = action_kind::stopped});
}

void version_switch::advance(time_point now)
{
    if (confirm_at_ <= now)
        confirm_current(now);
    // No step makes another version late, because limits are not negative and zero is none.
    for (version* v = first_after(0); v;) {
        const number n = v->id;
        if (v->limit <= now)
            end_late_state(*v, now);
        v = first_after(n);
    }
}

void version_switch::end_late_state(version& v, time_point now)
{
    switch (v.state) {
    case state::loading:
    case state::warming_up: return end_load(v, load_end::late, now);
    case state::draining: note_overdue(v); return close(v, shutdown::abandon, now);
    case state::closing:
        note_overdue(v);
        return v.mode == shutdown::drain ? close(v, shutdown::abandon, now) : finish_close(v);
    case state::waiting:
    case state::current:
    case state::previous:
    case state::closed: return;
    }
}

version_switch::time_point version_switch::next_time() const noexcept
{
    time_point at = confirm_at_;
    for (const version& v : versions_)
        at = std::min(at, v.limit);
    return at;
}

std::optional<version_switch::action> version_switch::next_action() noexcept
{
    if (!has_actions())
        return std::nullopt;
    const action a = actions_[first_action_++];
    if (!has_actions()) {
        actions_.clear();
        first_action_ = 0;
    }
    return a;
}

} // namespace coaccel::detail
