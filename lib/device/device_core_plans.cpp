#include "core/escape_text.hpp"
#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

// Plans: loading, unloading, and what their runs need.
namespace coaccel::detail {
namespace {

// How many requests for plans one turn starts before it yields the executor.
constexpr int parts_per_turn = 64;

/// The error with the name of the plan. The code of a vendor's library has the vendor's message only.
error_code of_plan(const loaded_plan& p, const error_code& ec)
{
    const errc what = errc_of(ec);
    return what == errc{} ? ec : op_error(what, p.title.text, {ec.message()});
}

/// Null: the plan has no durable state.
const plan_slot* first_durable(const plan_data& plan) noexcept
{
    const auto found = std::ranges::find_if(plan.slots, [](const plan_slot& s) { return s.durable.has_value(); });
    return found == plan.slots.end() ? nullptr : &*found;
}

/// Makes the plans of the call; nothing is loaded yet.
error_code make_plans(load_call& r, std::chrono::nanoseconds hang_timeout, isolation where)
{
    if (!r.set)
        return op_error(errc::invalid_argument, "async_load", {"the plan set is empty"});
    const plan_set_data& set = *plan_set_access::data(r.set);
    if (!std::ranges::all_of(set.plans, [](const set_plan& p) { return bool(p.plan); }))
        return op_error(errc::invalid_argument, "async_load", {"the plan is empty"});
    if (auto ec = r.how.check())
        return ec;
    if (r.how.suspect_after.enabled() && hang_timeout.count() == 0)
        return op_error(errc::invalid_option, "async_load",
                        {"suspect_after needs context.hang_timeout, which ends a run that never ends"});
    if (where != isolation::worker)
        for (const set_plan& p : set.plans)
            if (const plan_slot* const s = first_durable(*plan_access::data(p.plan)))
                return op_error(errc::unsupported_op, "async_load",
                                {"the state ", s->name,
                                 " is durable, and the device is in this process, where memory ends with its context; "
                                 "use isolation::worker"});
    const auto common = set.users.empty() ? nullptr : std::make_shared<common_states>(set.users);
    for (const set_plan& p : set.plans) {
        const bool shares = std::ranges::any_of(p.states, [](std::uint32_t i) { return i != own_state; });
        r.made.push_back(std::make_shared<loaded_plan>(p, r.how, shares ? common : nullptr));
    }
    return {};
}

void begin_progress(load_call& r) noexcept
{
    std::uint64_t bytes = 0;
    for (const auto& p : r.made) {
        p->progress = r.how.progress;
        for (const plan_content& c : p->data.constant_contents)
            bytes += c.bytes;
    }
    load_progress_access::begin(*r.how.progress, bytes, static_cast<int>(r.made.size()) * r.how.initial);
}

} // namespace

error_code device_core::is_unloaded(const loaded_plan& p) noexcept
{
    return op_error(errc::invalid_argument, p.title.text, {"it has been unloaded"});
}

void device_core::drop_plan(const std::shared_ptr<loaded_plan>& p) noexcept
{
    if (inbox_.closed())
        return;
    p->self = p;
    push(*p);
}

void device_core::on_load(load_call& r)
{
    if (life_.stopping())
        return complete(r, errc::device_stopped);
    if (life_.failed())
        return complete(r, errc::device_failed);
    if (r.recorded) {
        auto graph = make_graph(r);
        if (!graph)
            return complete(r, graph.error());
        r.made.push_back(std::move(graph).value());
    } else if (auto ec = make_plans(r, options_.context.hang_timeout, options_.isolation)) {
        return complete(r, ec);
    }
    if (const error_code refused = find_refused(r))
        return complete(r, refused);
    for (const auto& p : r.made) {
        p->call = &r;
        admission_.add_pool(p->pool);
        plans_.add(p);
    }
    if (r.how.progress)
        begin_progress(r);
}

void device_core::on_unload(unload_call& r)
{
    for (const auto& p : r.plans) {
        if (p->gone)
            continue;
        p->unloads.push_back(&r);
        ++r.left;
        close_plan(*p);
    }
    if (r.left == 0)
        complete(r, {});
}

/// Refuses further runs; the plan is unloaded when those that have been started have ended.
void device_core::close_plan(loaded_plan& p)
{
    if (std::exchange(p.closing, true))
        return;
    while (request* r = admission_.pop(p.pool))
        complete(*r, is_unloaded(p));
}

/// Plans without handles are unloaded when their runs have ended, because until then their runs may have to be
/// repeated.
void device_core::close_dropped_plans()
{
    dropped_plans_ = false;
    for (const auto& p : plans_.all())
        if (p->dropped && !p->closing) {
            if (p->pool.has_waiting() || p->running() > 0)
                dropped_plans_ = true;
            else
                close_plan(*p);
        }
}

/// Why a run cannot be accepted.
error_code device_core::check_run(const run_call& r) const noexcept
{
    const loaded_plan& p = r.plan();
    if (p.gone || p.closing)
        return is_unloaded(p);
    // The parts of a run are the way to find out which of them was the cause.
    if (p.is_quarantined() && (!r.part_of_suspect || p.loads.refused()))
        return is_quarantined(p);
    if (p.is_suspect())
        return is_suspect(p);
    return r.refused() ? r.refused() : p.broken.get();
}

void device_core::use_instance(run_call& r) const noexcept
{
    const plan_instance& i = r.plan().instances[r.instance];
    r.use(i.id, i.chain, i.memory);
}

/// Contexts in this process end with it, so nothing of them has to outlive them.
sharing device_core::sharing_of(const context& c) const noexcept
{
    return options_.isolation == isolation::worker && c.can_export() ? sharing::yes : sharing::no;
}

void device_core::log_unshared(const loaded_plan& p, const error_code& why) const
{
    if (log_enabled(log_level::warning))
        log_line(log_level::warning,
                 p.title.text + ": a constant is not shared between workers: " + escape_text(why.message()));
}

void device_core::submit_part(load_part& part, context& to)
{
    if (const error_code ec = part.refusal)
        finished(part, ec);
    else
        to.submit(part, now_);
}

void device_core::advance_plans()
{
    for (int n = 0; n < parts_per_turn && can_advance_plans(); ++n) {
        load_isolation_.started(isolates_load(), now_, longest_isolation(options_.context.hang_timeout));
        submit_part(*plans_.next(sharing_of(*context_)), *context_);
    }
}

void device_core::on_part(load_part& part, const error_code& ec)
{
    const auto plan = part.plan;
    auto news = plans_.finished(part, ec);
    log_unload_error(*plan, news.unload_error);
    if (context_)
        for (const any_ref& r : news.unused)
            context_->release(r);
    if (news.unshared)
        log_unshared(*news.unshared, news.unshared_error);
    if (news.remade && log_enabled(log_level::warning))
        log_line(log_level::warning, news.remade->title.text + ": a durable state begins again, because its memory " +
                                         "cannot be used: " + escape_text(news.remade_error.message()));
    if (news.lost)
        load_isolation_.lost(news.lost->number);
    if (loaded_plan* p = news.extended) {
        ++plan_instances_;
        if (p->instances.size() == 1)
            p->loads.loaded();
        admission_.add_instance(p->pool, static_cast<std::uint32_t>(p->instances.size() - 1));
        if (p->data.over_buffers)
            p->make_run();
        if (p->call && p->call->is_loaded())
            end_load(*p->call, {});
    }
    if (loaded_plan* p = news.limited) {
        if (log_enabled(log_level::warning))
            log_line(log_level::warning, p->title.text + ": no more than " + std::to_string(p->instances.size()) +
                                             " instances: " + news.error.message());
        if (p->call && p->call->is_loaded())
            end_load(*p->call, {});
    }
    if (loaded_plan* p = news.broken) {
        if (log_enabled(log_level::error))
            log_line(log_level::error, p->title.text + " could not be loaded again: " + news.error.message());
        refuse_suspect_plans();
        while (request* r = admission_.pop(p->pool))
            complete(*r, news.error);
    }
    if (news.left)
        end_plan(*news.left, news.error);
}

/// The call does not end with this error: the instance cannot be unloaded again, and its memory has been released.
void device_core::log_unload_error(const loaded_plan& p, const error_code& ec) const
{
    // The loss of the context is reported elsewhere, and leaves nothing to unload.
    if (ec && !is_context_lost(ec) && log_enabled(log_level::warning))
        log_line(log_level::warning,
                 escape_text(p.title.text) + ": an instance could not be unloaded: " + escape_text(ec.message()));
}

/// The plan has left the list.
void device_core::end_plan(loaded_plan& p, const error_code& ec)
{
    while (request* r = admission_.pop(p.pool))
        complete(*r, ec ? ec : is_unloaded(p));
    admission_.remove_pool(p.pool);
    for (const any_ref& r : held_.remove(p.buffers))
        if (context_)
            context_->release(r);
    if (p.call)
        leave_load(p, ec);
    for (unload_call* r : std::exchange(p.unloads, {}))
        if (--r->left == 0)
            complete(*r, {});
}

/// Answers a call whose plans are loaded, or no longer wanted.
void device_core::end_load(load_call& r, const error_code& ec)
{
    if (!ec)
        permit_loads(r);
    r.detach_plans();
    complete(r, ec);
}

/// A plan has left the list before all plans of its call were loaded. The others leave too, and then the call ends.
void device_core::leave_load(loaded_plan& p, const error_code& ec)
{
    load_call& r = *p.call;
    p.leave_call();
    if (!r.failure)
        r.failure = r.made.size() > 1 ? of_plan(p, ec) : ec;
    bool last = true;
    for (const auto& other : r.made)
        if (other->call) {
            last = false;
            close_plan(*other);
        }
    if (last)
        complete(r, r.failure);
}

/// The context is gone. Plans whose callers still want them are loaded into the next one; graphs end with their
/// buffers.
void device_core::forget_plans()
{
    admission_.forget_instances();
    held_.clear();
    for (const auto& p : plans_.forget_context())
        end_plan(*p, p->call ? make_error_code(errc::context_lost) : error_code());
}

/// Ends the calls that wait for plans; plans that were loaded before stay.
void device_core::end_plan_calls(const error_code& ec)
{
    const auto all = plans_.all();
    for (const auto& p : all) {
        if (load_call* r = p->call) {
            for (const auto& unwanted : r->made)
                close_plan(*unwanted);
            end_load(*r, r->failure ? r->failure : ec);
        }
        while (!p->unloads.empty()) {
            unload_call& r = *p->unloads.front();
            r.detach_plans();
            complete(r, ec);
        }
    }
}

void device_core::end_plans(const error_code& ec)
{
    for (const auto& p : plans_.take_all()) {
        if (p->call)
            end_load(*p->call, p->call->failure ? p->call->failure : ec);
        end_plan(*p, ec);
    }
}

void device_core::cancel_load(load_call& r)
{
    r.detach_plans();
    for (const auto& p : r.made)
        close_plan(*p);
}

void device_core::take_plan_calls(async_op_list& out) noexcept
{
    for (const auto& p : plans_.take_all()) {
        if (load_call* r = p->call) {
            r->detach_plans();
            out.push_back(*r);
        }
        while (!p->unloads.empty()) {
            unload_call& r = *p->unloads.front();
            r.detach_plans();
            out.push_back(r);
        }
        admission_.remove_pool(p->pool);
    }
}

} // namespace coaccel::detail
