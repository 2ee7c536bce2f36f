#include "serve/hot_swap_turn.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <utility>

namespace coaccel::detail {

hot_swap_ptr hot_swap_core::make(asio::any_io_executor ex, const serve::hot_swap_options& options)
{
    auto core = std::make_shared<hot_swap_core>(std::move(ex), options);
    core->self_ = std::make_unique<self_reference>(core);
    core->enlist(core->executor_.get());
    return core;
}

hot_swap_core::hot_swap_core(asio::any_io_executor ex, const serve::hot_swap_options& options)
    : executor_(std::move(ex)), options_(options), versions_(options)
{}

hot_swap_core::~hot_swap_core()
{
    withdraw();
}

asio::any_io_executor hot_swap_core::executor() const
{
    const std::scoped_lock lock(mutex_);
    return executor_.get();
}

bool hot_swap_core::has_lost_its_context() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return closed_;
}

/// Preconditions: the lock is held.
void hot_swap_core::schedule()
{
    if (closed_ || in_turn_)
        return;
    executor_.post_turn(turn_function{shared_from_this()});
    in_turn_ = true;
}

void hot_swap_core::wake()
{
    const std::scoped_lock lock(mutex_);
    schedule();
}

bool hot_swap_core::is_failure(const error_code& ec) const
{
    const auto& mine = options_.rollback.is_failure;
    return mine ? mine(ec) : serve::is_version_failure(ec);
}

error_code hot_swap_core::stopped_error() const
{
    return op_error(errc::actor_stopped, options_.name, {"it has been stopped"});
}

result<picked_version> hot_swap_core::pick()
{
    bool stopped = false;
    {
        const std::scoped_lock lock(mutex_);
        stopped = closed_ || versions_.stopping();
        if (!stopped)
            if (const number n = versions_.take())
                return picked_version{records_.find(n)->second.what, n};
        ++counters_.refused;
    }
    return stopped ? stopped_error() : op_error(errc::actor_stopped, options_.name, {"no version is loaded"});
}

void hot_swap_core::ended(number n, const error_code* ec) noexcept
{
    using outcome = version_switch::outcome;
    // The predicate is called without the lock.
    const outcome how = !ec               ? outcome::other
                        : !*ec            ? outcome::completed
                        : is_failure(*ec) ? outcome::failed
                                          : outcome::other;
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    record& r = records_.find(n)->second;
    constexpr std::uint64_t counts::* mine[] = {&counts::completed, &counts::failed, &counts::other};
    constexpr std::uint64_t serve::hot_swap_stats::* all[] = {
        &serve::hot_swap_stats::completed, &serve::hot_swap_stats::failed, &serve::hot_swap_stats::other};
    const auto at = static_cast<std::size_t>(how);
    ++(r.requests.*mine[at]);
    ++(counters_.*all[at]);
    if (how == outcome::failed)
        r.last_failure = *ec;
    // A version that is not watched and stays needs no time, which is the most expensive part of this function.
    const bool needs_time = versions_.watches(n) || n != versions_.current();
    versions_.ended(n, how, needs_time ? clock::now() : clock::time_point());
    if (versions_.has_actions())
        schedule();
}

void hot_swap_core::add_record(records::node_type node, number n, load_version_op& op) noexcept
{
    last_number_ = n;
    op.version = n;
    record& r = node.mapped();
    r.maker = std::move(op.maker);
    r.op = &op;
    node.key() = n;
    records_.insert(std::move(node));
    loads_.add(op);
}

bool hot_swap_core::load(load_version_op& op)
{
    // Destroyed outside the lock: the handler may own the hot_swap.
    async_op_list unused;
    // Whatever needs memory comes before the first change.
    records fresh;
    fresh[0].name = op.name;
    const std::scoped_lock lock(mutex_);
    if (closed_) {
        unused.push_back(op);
        return true;
    }
    op.ec = op.refused;
    if (!op.ec) {
        const number n = last_number_ + 1;
        schedule();
        switch (versions_.load(n, clock::now())) {
        case version_switch::admission::accepted: add_record(fresh.extract(fresh.begin()), n, op); return true;
        case version_switch::admission::full:
            op.ec = op_error(errc::queue_full, options_.name,
                             {"version \"", op.name, "\": ", label(versions_.loading()), " is being loaded, and ",
                              options_.max_waiting_loads, " loads wait"});
            break;
        case version_switch::admission::stopped:
            op.ec = op_error(errc::actor_stopped, options_.name,
                             {"version \"", op.name, "\": the hot_swap has been stopped"});
            break;
        }
    } else {
        op.ec = op_error(errc_of(op.ec), options_.name, {"version \"", op.name, "\": ", op.refused.message()});
    }
    ++counters_.loads_failed;
    return false;
}

void hot_swap_core::cancel(load_version_op& op)
{
    const std::scoped_lock lock(mutex_);
    // The operation is answered in the turn, together with the end of its version.
    if (!closed_ && op.waiting() && versions_.cancel(op.version, clock::now()))
        schedule();
}

void hot_swap_core::loaded(number n, const error_code& ec, std::shared_ptr<const served_version> what)
{
    {
        const std::scoped_lock lock(mutex_);
        if (closed_)
            return;
        if (versions_.loaded(n, !ec, clock::now())) {
            // Nothing but this thread has the version, so the record is still there.
            record& r = records_.find(n)->second;
            r.load_error = ec;
            r.what = std::move(what);
            return schedule();
        }
    }
    // The load was cancelled, stopped or late, but its function has made a version, which must not only be destroyed.
    if (what)
        close_unwanted(n, what);
}

void hot_swap_core::close_unwanted(number n, const std::shared_ptr<const served_version>& what)
{
    try {
        // Also kept here: the handler may be destroyed within the call.
        what->close(coaccel::shutdown::drain, version_closed(shared_from_this(), n, what));
    } catch (...) {
        // The handler is destroyed, and with it the version.
    }
}

void hot_swap_core::warmed_up(number n, const error_code& ec)
{
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    if (const auto found = records_.find(n); found != records_.end())
        found->second.load_error = ec;
    versions_.warmed_up(n, !ec, clock::now());
    if (versions_.has_actions())
        schedule();
}

void hot_swap_core::closed(number n) noexcept
{
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    versions_.closed(n, clock::now());
    if (versions_.has_actions())
        schedule();
}

error_code hot_swap_core::roll_back(number from)
{
    number current = 0;
    bool has_previous = false;
    {
        const std::scoped_lock lock(mutex_);
        if (closed_ || versions_.stopping())
            return stopped_error();
        if (versions_.roll_back(from, clock::now())) {
            schedule();
            return {};
        }
        current = versions_.current();
        has_previous = versions_.previous() != 0;
    }
    if (has_previous)
        return op_error(errc::invalid_argument, options_.name,
                        {"roll_back: version ", from, " is not the current one; that is ", current});
    return op_error(errc::invalid_argument, options_.name,
                    {"roll_back: there is no previous version; the current one is ", current});
}

error_code hot_swap_core::confirm(number which)
{
    number current = 0;
    {
        const std::scoped_lock lock(mutex_);
        if (closed_ || versions_.stopping())
            return stopped_error();
        current = versions_.current();
        if (versions_.confirm(which, clock::now())) {
            schedule();
            return {};
        }
    }
    // A version that has been confirmed already is no error.
    if (current != 0 && (which == 0 || which == current))
        return {};
    return op_error(errc::invalid_argument, options_.name,
                    {"confirm: version ", which, " is not the current one; that is ", current});
}

/// Preconditions: the lock is held.
void hot_swap_core::begin_stop(coaccel::shutdown mode)
{
    // What needs memory comes before the first change.
    schedule();
    if (!versions_.stopping())
        executor_.begin(device_executor::work::stopping);
    versions_.stop(mode, clock::now());
}

bool hot_swap_core::stop(stop_swap_op& op)
{
    async_op_list unused;
    const std::scoped_lock lock(mutex_);
    if (closed_) {
        unused.push_back(op);
        return true;
    }
    if (versions_.stopped())
        return false;
    begin_stop(op.mode);
    stops_.add(op);
    return true;
}

void hot_swap_core::cancel(stop_swap_op& op)
{
    {
        const std::scoped_lock lock(mutex_);
        if (closed_ || !op.waiting())
            return;
        stops_.remove(op);
    }
    op.ec = asio::error::operation_aborted;
    op.post();
}

void hot_swap_core::handle_dropped()
{
    const std::scoped_lock lock(mutex_);
    if (!closed_ && !versions_.stopped())
        begin_stop(coaccel::shutdown::drain);
}

serve::hot_swap_stats hot_swap_core::stats() const
{
    const std::scoped_lock lock(mutex_);
    serve::hot_swap_stats s = counters_;
    s.current = versions_.current();
    s.previous = versions_.previous();
    if (closed_)
        return s;
    for (const auto& v : versions_.versions()) {
        const auto found = records_.find(v.id);
        if (found == records_.end())
            continue;
        const record& r = found->second;
        s.versions.push_back(
            {v.id, r.name, v.state, v.in_flight, r.requests.completed, r.requests.failed, r.requests.other});
    }
    return s;
}

void hot_swap_core::shutdown(async_op_list& out) noexcept
{
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    loads_.move_all(out);
    stops_.move_all(out);
    executor_.release_work();
    executor_.let_go(out);
    // Not destroyed here, under the locks, but together with `out`.
    if (self_) {
        self_->dropped.swap(records_);
        out.push_back(*self_.release());
    }
}

} // namespace coaccel::detail
