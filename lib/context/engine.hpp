#ifndef COACCEL_CONTEXT_ENGINE_HPP
#define COACCEL_CONTEXT_ENGINE_HPP

#include "context/arrivals.hpp"
#include "context/buffer_store.hpp"
#include "context/completion_rule.hpp"
#include "context/context.hpp"
#include "context/lane_set.hpp"
#include "context/lifetime.hpp"
#include "context/operands.hpp"
#include "core/machine_limits.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// A context over any backend: the way of a request from its submission through a lane to its end. What it is made of
/// has places of its own: lane_set, buffer_store, arrivals, and lifetime for faults and the end.
template <backend B>
class engine final : public context {
public:
    engine(std::unique_ptr<B> b, context_identity identity, context_events& events, const context_options& options)
        : backend_(std::move(b)), events_(events), options_(options), rule_(options, shared_cpus()),
          lanes_(*backend_, events, options.lanes), buffers_(*backend_, lanes_, identity), life_(*backend_, options),
          arrivals_(*backend_, lanes_, life_, events)
    {
        backend_->listen({[](void* self) noexcept { static_cast<engine*>(self)->events_.wake(); }, this});
    }

    ~engine() override { life_.stop(backend_, lanes_); }

    std::string_view backend_name() const noexcept override { return B::name; }
    bool replaceable() const noexcept override { return B::replaceable; }
    void adopt(context_identity identity) noexcept override { buffers_.adopt(identity); }
    const op_info* describe(std::uint64_t op_id) const noexcept override { return backend_->describe(op_id); }

    error_code pin(std::span<std::byte> memory) override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        return backend_->pin(memory);
    }

    std::size_t live_buffers() const noexcept override { return buffers_.live(); }
    bool accepting() const noexcept override { return !life_.dying(); }
    hardware_info hardware() const override { return backend_->hardware(); }
    std::shared_ptr<pinned_memory> pinned() const override { return backend_->pinned(); }

    memory_info memory() const noexcept override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        return backend_->memory();
    }

    memory_info memory_use() const noexcept override
    {
        if constexpr (requires { backend_->memory_use(); })
            return backend_->memory_use();
        else
            return memory();
    }

    void submit(request& r, clock::time_point now) override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        now_ = now;
        start(r);
    }

    void release(const any_ref& buffer) noexcept override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        if (life_.dying())
            buffers_.forget(buffer);
        else
            buffers_.release(buffer);
    }

    next_turn turn(clock::time_point now, clock::duration patience) override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        now_ = now;
        const bool ended = !life_.dying() && arrivals_.sweep(now, polling_);
        progressed_ |= ended;
        if (!life_.dying()) {
            // First, because requests may be waiting for that memory.
            buffers_.give_back_unused();
            go_on();
        }
        if (!life_.dying())
            life_.look(lanes_, !outstanding(), now);
        if (life_.dying())
            return die(now);
        const auto next = rule_.decide(outstanding(), std::exchange(progressed_, false), now, forecast());
        using action = completion_rule::action;
        polling_ = next.what == action::poll || next.what == action::arm_and_poll;
        if (next.what == action::idle)
            return {};
        if (next.due)
            for (auto& l : lanes_)
                l->overdue = true;
        // What ended between the sweep and the arming is told by the notification itself.
        if (next.what == action::arm || next.what == action::arm_and_poll)
            for (auto& l : lanes_)
                life_.failed(l->arm(*backend_, options_.completion));
        if (polling_ && patience > clock::duration::zero())
            look_on(std::min(clock::now() + (ended ? std::min(patience, gathering) : patience), next.until));
        if (life_.dying())
            return die(now);
        // Who would come round once more for nothing could not be at the service of the next request.
        if (!outstanding()) {
            polling_ = false;
            return {};
        }
        return {polling_ ? next_turn::kind::again : next_turn::kind::sleep, std::min(life_.next_look(), next.look_at)};
    }

    void drop(pending_list& out) noexcept override
    {
        life_.stop(backend_, lanes_);
        for_each_outstanding([&out](request& r) { out.push_back(r); });
    }

    void disown(pending_list& out) noexcept override
    {
        for_each_outstanding([&out](request& r) { out.push_back(r); });
    }

private:
    using lane = detail::lane<B>;
    using departure = typename lane::departure;
    /// Ends come in swarms: who has seen one waits so long for others, because coming round for each costs more.
    static constexpr clock::duration gathering = std::chrono::microseconds(1);
    static constexpr auto dying_interval = std::chrono::milliseconds(1);

    struct use {
        std::uint32_t slot;
        access mode;
        element_range where;
    };

    static unsigned shared_cpus()
    {
        if constexpr (requires { requires B::runs_on_cpu; })
            return usable_cpus();
        return completion_rule::own_processors;
    }

    void start(request& r)
    {
        if (life_.dying())
            return events_.finished(r, errc::context_lost);
        if (buffers_.starving() && std::ranges::any_of(r.ops, [this](const bound_op& o) { return is_allocation(o); }))
            return hungry_.push_back(&r);
        auto lane = lanes_.choose(r.ops.front().info->lib, r.options);
        if (!lane)
            return events_.finished(r, life_.failed(lane.error()));
        frontier waits;
        uses_.clear();
        for (std::size_t i = 0; i < r.ops.size(); ++i) {
            auto bound = bind(r, i, waits);
            if (!bound)
                return events_.finished(r, placed(r, i, bound.error()));
            if (bound.value() == progress::pending) {
                hungry_.push_back(&r);
                if (buffers_.starving())
                    starving_ = &r;
                return end_given_up();
            }
        }
        // Memory is there as soon as it is handed out.
        if (std::ranges::all_of(r.ops, [this](const bound_op& o) { return is_allocation(o); }))
            return events_.finished(r, {});
        launch(r, *lane.value(), std::move(waits));
    }

    /// Pending: memory for it is on its way, and the whole request is to be started anew.
    result<progress> bind(request& r, std::size_t i, frontier& waits)
    {
        r.prepare(i);
        bound_op& o = r.ops[i];
        if (auto ec = o.info->check(o.op))
            return ec;
        if (is_allocation(o))
            return allocate(o);
        if (!backend_->supports(*o.info))
            return not_implemented(*o.info, B::name);
        const auto& fields = o.info->operands;
        for (std::size_t f = 0; f < fields.size(); ++f) {
            const any_ref& ref = operand_of(o, f);
            const auto looked_up = buffers_.find(ref, fields[f].type);
            if (!looked_up)
                return buffers_.refusal(o, f, looked_up.error());
            auto* const found = looked_up.value();
            o.operands[f] = static_cast<char*>(found->memory) + ref.offset * size_of(ref.type);
            const auto where = elements_of(ref, found->size);
            found->log.collect(fields[f].mode, where, waits);
            uses_.push_back({ref.slot, fields[f].mode, where});
        }
        if (const auto two = o.info->may_overlap ? std::nullopt : find_overlap(o))
            return overlap_error(o, two->first, two->second);
        return progress::passed;
    }

    // By id: each shared library has descriptions of its own.
    bool is_allocation(const bound_op& o) const noexcept { return o.info->id == allocation_id_; }

    result<progress> allocate(bound_op& o)
    {
        auto& made = *static_cast<allocation*>(o.reply);
        auto done = buffers_.allocate(o.template as<allocate_op>(), made);
        if (!done)
            done = allocation_error(o, life_.failed(done.error()));
        else if (done.value() == progress::passed)
            uses_.push_back({made.ref.slot, access::write, all_elements});
        return done;
    }

    void launch(request& r, lane& l, frontier waits)
    {
        l.last_ticket += lane::tickets_for(r.ops.size());
        const std::uint64_t ticket = l.last_ticket;
        for (const use& u : uses_)
            buffers_.log(u.slot).note(u.mode, u.where, {l.id, ticket}, lanes_.order());
        departure d{&r, ticket, std::move(waits)};
        if (!l.departures.empty() || !depart(l, d))
            l.departures.push_back(std::move(d));
    }

    /// Puts the request on the lane's stream. False: not all of it yet.
    bool depart(lane& l, departure& d)
    {
        request& r = *d.who;
        if (!l.has_room())
            return false;
        if (d.next_op == 0 && !d.launched) {
            for (const point& p : d.waits)
                if (!lanes_.has_taken_off(p) && p.lane != l.id)
                    return false;
            for (const point& p : d.waits)
                if (!r.outcome && lanes_.must_wait(l, p))
                    r.outcome = life_.fatal(lanes_.hold_back(l, l.taken_off + 1, p));
        }
        for (; d.next_op < r.ops.size() && !r.outcome; ++d.next_op) {
            if (d.next_op == d.next_mark) {
                d.next_mark += lane::mark_interval;
                mark(l);
            }
            if (!l.has_room())
                return false;
            bound_op& o = r.ops[d.next_op];
            if (is_allocation(o))
                continue;
            auto started = backend_->enqueue(l.work, o);
            d.launched = true;
            if (!started)
                r.outcome = life_.failed(started.error());
            else if (started.value() == progress::pending)
                return false;
            l.note_command();
        }
        // Of one that failed on the way, the tickets that are left.
        while (l.taken_off + 1 < d.ticket)
            mark(l);
        if (auto ec = l.take_off(*backend_, &r, now_))
            life_.fatal(ec);
        progressed_ = true;
        return true;
    }

    void mark(lane& l)
    {
        if (auto ec = l.take_off(*backend_, nullptr, now_))
            life_.fatal(ec);
        progressed_ = true;
    }

    /// Goes on with what was waiting for the backend, or for what waited for it.
    void go_on()
    {
        end_given_up();
        if (!hungry_.empty() && buffers_.try_again())
            for (request* r : std::exchange(hungry_, {}))
                start(*r);
        for (bool moved = true; moved && !life_.dying();) {
            moved = false;
            for (auto& l : lanes_)
                while (!l->departures.empty() && !life_.dying() && depart(*l, l->departures.front())) {
                    l->departures.pop_front();
                    moved = true;
                }
        }
    }

    /// Ends the request that the other allocations wait behind, if its caller has given up: nothing of it is on the
    /// device yet.
    void end_given_up()
    {
        if (!buffers_.starving() || starving_->given_up == given_up::no)
            return;
        buffers_.stop_starving();
        std::erase(hungry_, starving_);
        events_.finished(*starving_, error_of(starving_->given_up));
    }

    /// Coming round costs the executor a call of the system, and what ends meanwhile is seen late.
    void look_on(clock::time_point until)
    {
        bool ended = false;
        for (auto now = clock::now(); now < until && !ended && !life_.dying() && !events_.has_more();
             now = clock::now())
            ended = arrivals_.sweep(now, polling_);
        progressed_ |= ended;
        if (ended && !life_.dying())
            buffers_.give_back_unused();
    }

    completion_rule::forecast forecast() const noexcept
    {
        return options_.completion == completion::adaptive ? arrivals_.forecast() : completion_rule::forecast{};
    }

    /// Keeps the requests until nobody writes to their callers' memory any more.
    next_turn die(clock::time_point now)
    {
        if (!life_.is_over())
            return {next_turn::kind::sleep, now + dying_interval};
        if (std::exchange(dead_, true))
            return {};
        for_each_outstanding([this](request& r) { events_.finished(r, life_.verdict()); });
        events_.lost(life_.why());
        return {};
    }

    bool outstanding() const noexcept { return !hungry_.empty() || lanes_.busy(); }

    template <class Function>
    void for_each_outstanding(Function function)
    {
        for (auto& l : lanes_) {
            for (; !l->flights.empty(); l->flights.pop_front())
                if (l->flights.front().who)
                    function(*l->flights.front().who);
            for (; !l->departures.empty(); l->departures.pop_front())
                function(*l->departures.front().who);
        }
        for (request* r : std::exchange(hungry_, {}))
            function(*r);
    }

    std::unique_ptr<B> backend_;
    context_events& events_;
    context_options options_;
    completion_rule rule_;
    lane_set<B> lanes_;
    buffer_store<B> buffers_;
    lifetime<B> life_;
    const std::uint64_t allocation_id_ = info_of<allocate_op>().id;
    /// Of the turn, or of the submission.
    clock::time_point now_{};
    std::vector<use> uses_;
    /// Requests whose memory is being asked for.
    std::vector<request*> hungry_;
    /// The one that the others wait behind, while buffers_.starving().
    request* starving_ = nullptr;
    bool progressed_ = false;
    bool polling_ = false;
    bool dead_ = false;
    // Last: what it learns is long.
    arrivals<B> arrivals_;
};

} // namespace coaccel::detail

#endif
