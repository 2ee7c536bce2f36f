#include "serve/plan_runner.hpp"

#include "serve/batcher_core.hpp"
#include "serve/plan_runner_places.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::detail {
namespace {

/// So that graphs can use the memory of each argument directly.
constexpr std::uint64_t alignment = 256;

} // namespace

model_layout::model_layout(const serve::batch_model& m)
{
    const std::uint64_t rows = m.plans().back().rows;
    const auto add = [&](const plan_argument& a, slot_kind direction) {
        const std::uint64_t row = a.count * size_of(a.type);
        arguments.push_back({bytes, row, a.count, a.type, direction});
        bytes += (row * rows + alignment - 1) / alignment * alignment;
    };
    for (const plan_argument& a : m.inputs())
        add(a, slot_kind::input);
    inputs = arguments.size();
    for (const plan_argument& a : m.outputs())
        add(a, slot_kind::output);
}

/// The end of something that the runner has started on a device. Owned by the handler, then by the inbox.
struct plan_runner::message : batch_message, async_op_base {
    message() noexcept : batch_message(type::runner) {}
    virtual ~message() = default;
    virtual void apply(plan_runner& runner) = 0;

    void post() override {}
    void destroy() noexcept override { delete this; }
};

struct plan_runner::plan_message final : message {
    void apply(plan_runner& runner) override { runner.on_loaded(*this); }

    std::size_t replica = 0;
    std::size_t model = 0;
    std::size_t size = 0;
    plan made;
};

struct plan_runner::memory_message final : message {
    void apply(plan_runner& runner) override { runner.on_allocated(*this); }

    place* where = nullptr;
    generation made_for = 0;
    pinned_buffer<std::uint8_t> made;
};

namespace {

/// Completes an operation by sending a message to the batcher. If it is destroyed instead of being called, because the
/// execution context of the device is destroyed, the operation has ended too.
template <class Message>
struct send_when_done {
    send_when_done(batcher_ptr c, std::unique_ptr<Message> m) noexcept : core(std::move(c)), message(std::move(m)) {}
    send_when_done(send_when_done&&) noexcept = default;

    ~send_when_done()
    {
        if (message)
            send(errc::device_stopped);
    }

    template <class Made>
    void operator()(error_code ec, Made made)
    {
        message->made = std::move(made);
        send(ec);
    }

    void send(error_code ec)
    {
        message->ec = ec;
        core->push(*message.release());
    }

    batcher_ptr core;
    std::unique_ptr<Message> message;
};

/// A plan that could not be loaded, perhaps because memory was short, is tried again after this time.
constexpr auto retry_interval = std::chrono::seconds(10);

} // namespace

/// As above, for a run, whose message is the place.
struct plan_runner::run_handler {
    run_handler(batcher_ptr c, place* p) noexcept : core(std::move(c)), where(p) {}
    run_handler(run_handler&&) noexcept = default;

    ~run_handler()
    {
        if (core)
            (*this)(errc::device_stopped);
    }

    void operator()(error_code ec)
    {
        where->ec = ec;
        std::exchange(core, nullptr)->push(*where);
    }

    batcher_ptr core;
    place* where;
};

plan_runner::plan_runner(std::vector<device> devices, models_ptr models, const serve::batcher_options& options)
    : models_(std::move(models)), options_(options), choice_(devices.size(), serve::balance::least_loaded)
{
    for (const serve::batch_model& m : models_->models) {
        layouts_.emplace_back(m);
        repeatable_.push_back(std::ranges::all_of(m.plans(), [](const auto& p) { return p.plan.repeatable(); }));
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
        auto r = std::make_unique<replica>(std::move(devices[i]));
        for (const serve::batch_model& m : models_->models) {
            auto& sizes = r->plans.emplace_back();
            for (const serve::batch_plan& p : m.plans())
                sizes.emplace_back().rows = p.rows;
        }
        for (int n = 0; n < options.max_in_flight; ++n)
            r->places.push_back(std::make_unique<place>(i));
        replicas_.push_back(std::move(r));
    }
}

plan_runner::~plan_runner() = default;

std::uint32_t plan_runner::places() const noexcept
{
    return static_cast<std::uint32_t>(replicas_.size()) * static_cast<std::uint32_t>(options_.max_in_flight);
}

void plan_runner::start(batcher_core& core)
{
    core_ = &core;
    // One more, so that nothing ends before everything has begun.
    preparing_ = 1;
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
        for (const auto& p : replicas_[r]->places) {
            ++preparing_;
            allocate(*p);
        }
        for (std::size_t m = 0; m < layouts_.size(); ++m) {
            ++preparing_;
            load(r, m, replicas_[r]->plans[m].size() - 1);
        }
    }
    step_done({});
}

void plan_runner::step_done(const error_code& ec)
{
    if (preparing_ == 0)
        return;
    if (ec && !failure_)
        failure_ = ec;
    if (--preparing_ == 0)
        core_->prepared(failure_);
}

void plan_runner::load(std::size_t r, std::size_t model, std::size_t size)
{
    replicas_[r]->plans[model][size].now = sized_plan::state::loading;
    auto message = std::make_unique<plan_message>();
    message->replica = r;
    message->model = model;
    message->size = size;
    plan_options how = options_.plan;
    how.instances = std::max(options_.max_in_flight, 1);
    how.initial = how.instances;
    replicas_[r]->gpu.async_load(models_->models[model].plans()[size].plan, how,
                                 send_when_done<plan_message>{self_of(*core_), std::move(message)});
}

void plan_runner::on_loaded(plan_message& m)
{
    if (stopped_)
        return;
    sized_plan& p = replicas_[m.replica]->plans[m.model][m.size];
    p.now = m.ec ? sized_plan::state::refused : sized_plan::state::ready;
    if (m.ec)
        p.try_again = exec_options::clock::now() + retry_interval;
    p.loaded = std::move(m.made);
    // Without one of the smaller plans the batcher works, with more padding.
    step_done(m.ec);
}

void plan_runner::allocate(place& p)
{
    std::uint64_t bytes = 1;
    for (const model_layout& l : layouts_)
        bytes = std::max(bytes, l.bytes);
    auto message = std::make_unique<memory_message>();
    message->where = &p;
    message->made_for = replicas_[p.replica]->gpu.status().generation;
    p.allocating = true;
    replicas_[p.replica]->gpu.async_alloc_pinned<std::uint8_t>(
        bytes, send_when_done<memory_message>{self_of(*core_), std::move(message)});
}

void plan_runner::on_allocated(memory_message& m)
{
    // The place is gone.
    if (stopped_)
        return;
    place& p = *m.where;
    p.allocating = false;
    if (!m.ec) {
        p.made_for = m.made_for;
        (p.busy ? p.next_memory : p.memory) = std::move(m.made);
    }
    step_done(m.ec);
}

void plan_runner::handle(batch_message& m)
{
    const std::unique_ptr<message> owned(static_cast<message*>(&m));
    owned->apply(*this);
}

void plan_runner::drop(batch_message& m, async_op_list& out) noexcept
{
    out.push_back(static_cast<message&>(m));
}

void plan_runner::read_health()
{
    for (std::size_t i = 0; i < replicas_.size(); ++i)
        choice_.set_health(i, health_of(replicas_[i]->gpu.status().state));
}

error_code plan_runner::broken() const
{
    for (const auto& r : replicas_)
        if (health_of(r->gpu.status().state) != replica_health::down)
            return {};
    return op_error(errc::device_failed, options_.name,
                    {"none of its ", replicas_.size(), " devices works; the first one is ",
                     to_string(replicas_.front()->gpu.status().state)});
}

bool plan_runner::has_room(std::uint64_t)
{
    return std::ranges::any_of(replicas_, [this](const auto& r) {
        return std::ranges::any_of(r->places, [](const auto& p) { return !p->busy; }) && is_usable(*r);
    });
}

/// Whether a batch may start on this replica. If its device has failed, requests that wait for a place may start as
/// soon as it is revived.
bool plan_runner::is_usable(replica& r)
{
    const auto usable = [&r] { return health_of(r.gpu.status().state) != replica_health::down; };
    if (usable())
        return true;
    auto state = r.gpu.watch_state();
    // A device that has stopped is never revived, and a watch that is closed would wake the batcher again and again.
    if (!r.repair.expired() || !state.is_open())
        return false;
    r.wait_for_repair(std::move(state), self_of(*core_));
    // It may have changed before the subscription.
    return usable();
}

batch_run& plan_runner::make(std::uint64_t shape, std::uint32_t rows)
{
    read_health();
    const auto has_free = [&](std::size_t i) {
        return std::ranges::any_of(replicas_[i]->places, [](const auto& p) { return !p->busy; });
    };
    auto r = choice_.pick(0, 0, has_free);
    // The health has changed since has_room: such a device answers at once.
    for (std::size_t i = 0; !r && i < replicas_.size(); ++i)
        if (has_free(i))
            r = i;
    choice_.started(*r);
    place& p = **std::ranges::find_if(replicas_[*r]->places, [](const auto& x) { return !x->busy; });
    p.busy = true;
    p.splitting = false;
    p.model = static_cast<std::size_t>(shape);
    p.size = choose_plan(*r, p.model, rows).rows;
    return p;
}

/// The smallest loaded plan that holds the rows. If the smallest of all is not loaded, it will be there for a later
/// batch.
plan_runner::sized_plan& plan_runner::choose_plan(std::size_t r, std::size_t model, std::uint32_t rows)
{
    auto& sizes = replicas_[r]->plans[model];
    const auto best = std::ranges::lower_bound(sizes, rows, {}, &sized_plan::rows);
    if (best->now == sized_plan::state::absent ||
        (best->now == sized_plan::state::refused && exec_options::clock::now() >= best->try_again))
        load(r, model, static_cast<std::size_t>(best - sizes.begin()));
    return *std::find_if(best, std::prev(sizes.end()),
                         [](const sized_plan& p) { return p.now == sized_plan::state::ready; });
}

void plan_runner::submit(place& p, const sized_plan& chosen, std::byte* memory, bool alone)
{
    auto& ranges = p.arguments.ranges;
    ranges.clear();
    for (const staged_argument& a : layouts_[p.model].arguments)
        ranges.push_back({memory + a.offset, a.count * chosen.rows, a.type, a.direction});
    p.arguments.fit();
    exec_options how{.priority = priority::low, .trace = p.trace};
    for (const batch_request* member : p.members)
        if (member)
            how.priority = std::max(how.priority, member->options.priority);
    plan_run_access::run(chosen.loaded, p.arguments, how, alone, run_handler{self_of(*core_), &p});
}

/// Whether the batch has ended a context, and its members may run again.
bool plan_runner::may_split(const place& p) const noexcept
{
    // With other policies a lost batch has had its tries.
    return p.ec == errc::context_lost && p.members.size() > 1 && options_.plan.rerun == rerun_policy::until_deadline &&
           repeatable_[p.model] && works(p);
}

bool plan_runner::works(const place& p) const
{
    return health_of(replicas_[p.replica]->gpu.status().state) != replica_health::down;
}

/// A device that has failed or was stopped leaves its batches to the others.
bool plan_runner::can_move(const batch_run& run, std::size_t member) const
{
    const auto& p = static_cast<const place&>(run);
    const error_code& ec = p.outcome(member);
    const bool gone = ec == errc::device_failed || ec == errc::device_stopped || is_device_lost(ec) ||
                      (ec == errc::context_lost && p.outcomes.empty() && !works(p));
    // A device does not know that its execution context was destroyed, so its state may be that of one that works.
    const bool tried_all = p.members[member]->moves + 1 >= replicas_.size();
    return gone && !tried_all && repeatable_[p.model] && options_.plan.rerun != rerun_policy::never && !broken();
}

bool plan_runner::goes_on(batch_run& run)
{
    auto& p = static_cast<place&>(run);
    switch (p.now) {
    case place::step::collecting:
        if (p.left == 0)
            return false;
        begin_run(p);
        return true;
    case place::step::delivering: p.delivered = true; return false;
    case place::step::running: break;
    }
    if (p.splitting) {
        p.outcomes[p.member] = p.ec;
        if (!p.ec)
            keep_single_outputs(p);
        ++p.member;
    } else if (may_split(p)) {
        core_->note_split();
        p.splitting = true;
        p.member = 0;
        p.outcomes.assign(p.members.size(), p.ec);
    }
    return (p.splitting && run_next_alone(p)) || delivers_elsewhere(p);
}

void plan_runner::run(batch_run& run)
{
    auto& p = static_cast<place&>(run);
    if (collects_elsewhere(p))
        return;
    collect(layouts_[p.model], p);
    begin_run(p);
}

void plan_runner::begin_run(place& p)
{
    p.now = place::step::running;
    auto& sizes = replicas_[p.replica]->plans[p.model];
    submit(p, *std::ranges::find(sizes, p.size, &sized_plan::rows), p.data(), false);
}

/// Runs the next member that still waits for its answer. Alone on the device from the start: so the one that ends the
/// context is known after one more loss, however many there are.
bool plan_runner::run_next_alone(place& p)
{
    while (p.member < p.members.size() && !p.members[p.member])
        ++p.member;
    if (p.member == p.members.size() || stopped_)
        return false;
    if (!works(p)) {
        std::fill(p.outcomes.begin() + static_cast<std::ptrdiff_t>(p.member), p.outcomes.end(),
                  make_error_code(errc::device_failed));
        return false;
    }
    sized_plan& chosen = choose_plan(p.replica, p.model, p.members[p.member]->rows);
    make_single_inputs(p, chosen.rows);
    submit(p, chosen, p.single.data(), true);
    return true;
}

void plan_runner::revive()
{
    for (const auto& r : replicas_)
        for (const auto& sizes : r->plans)
            for (const sized_plan& p : sizes)
                if (p.loaded.quarantined())
                    p.loaded.async_revive([](error_code) {});
}

void plan_runner::recycle(batch_run& run)
{
    auto& p = static_cast<place&>(run);
    p.busy = false;
    p.single = {};
    choice_.ended(p.replica);
    if (p.next_memory)
        p.memory = std::move(p.next_memory);
    // Memory of an earlier context still works, but is copied once more.
    if (!stopped_ && !p.allocating && replicas_[p.replica]->gpu.status().generation != p.made_for)
        allocate(p);
}

void plan_runner::stop() noexcept
{
    stopped_ = true;
    // The devices, too: each copy keeps its device running.
    replicas_.clear();
}

} // namespace coaccel::detail
