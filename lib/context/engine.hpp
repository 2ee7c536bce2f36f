#ifndef COACCEL_CONTEXT_ENGINE_HPP
#define COACCEL_CONTEXT_ENGINE_HPP

#include "context/buffer_table.hpp"
#include "context/completion_rule.hpp"
#include "context/context.hpp"
#include "context/lane.hpp"
#include "context/lane_choice.hpp"
#include "context/operands.hpp"

#include <coaccel/detail/transfer_ops.hpp>

#include <boost/assert.hpp>

#include <algorithm>
#include <forward_list>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// A context over any backend: buffers, lanes, hazards, tickets, completion, faults.
template <backend B>
class engine final : public context {
public:
    engine(std::unique_ptr<B> b, context_identity identity, context_events& events, const context_options& options)
        : backend_(std::move(b)), events_(events), options_(options), table_(identity), choice_(options.lanes),
          rule_(options), lane_of_key_(choice_.keys(), no_lane)
    {
        backend_->listen({[](void* self) noexcept { static_cast<engine*>(self)->events_.wake(); }, this});
    }

    ~engine() override { stop(); }

    std::string_view backend_name() const noexcept override { return B::name; }
    bool replaceable() const noexcept override { return B::replaceable; }
    void adopt(context_identity identity) noexcept override { table_.adopt(identity); }
    const op_info* describe(std::uint64_t op_id) const noexcept override { return backend_->describe(op_id); }

    error_code pin(std::span<std::byte> memory) override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        return backend_->pin(memory);
    }

    std::size_t live_buffers() const noexcept override { return table_.live(); }
    bool accepting() const noexcept override { return !dying_; }
    hardware_info hardware() const override { return backend_->hardware(); }
    std::shared_ptr<pinned_memory> pinned() const override { return backend_->pinned(); }

    memory_info memory() const noexcept override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        return backend_->memory();
    }

    void submit(request& r, clock::time_point now) override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        r.launched = now;
        start(r);
    }

    void release(const any_ref& buffer) noexcept override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        if (auto retired = table_.retire(buffer); retired && !dying_)
            if (!give_back(*retired))
                retiring_.push_back(std::move(*retired));
    }

    next_turn turn(clock::time_point now) override
    {
        [[maybe_unused]] const auto here = backend_->enter();
        if (!dying_)
            progressed_ |= sweep(now);
        if (!dying_)
            go_on();
        if (!dying_)
            look_for_faults(now);
        if (dying_)
            return die(now);
        retire_unused();
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
                failed(l->arm(*backend_, options_.completion));
        // Coming round costs the executor a call of the system, so a turn looks a few times before it gives way.
        for (int n = 0; n < looks_per_turn && polling_ && !progressed_ && !dying_; ++n)
            progressed_ |= sweep(clock::now());
        if (dying_)
            return die(now);
        return {polling_ ? next_turn::kind::again : next_turn::kind::sleep, std::min(next_look_, next.look_at)};
    }

    void drop(pending_list& out) noexcept override
    {
        stop();
        for_each_outstanding([&out](request& r) { out.push_back(r); });
    }

private:
    using lane = detail::lane<B>;
    using departure = typename lane::departure;
    static constexpr int no_lane = -1;
    static constexpr int looks_per_turn = 6;
    static constexpr auto dying_interval = std::chrono::milliseconds(1);
    static constexpr auto longest_farewell = std::chrono::milliseconds(20);

    struct use {
        std::uint32_t slot;
        access mode;
    };

    void start(request& r)
    {
        if (dying_)
            return events_.finished(r, errc::context_lost);
        auto lane = lane_for(r);
        if (!lane)
            return events_.finished(r, lane.error());
        frontier waits;
        uses_.clear();
        for (std::size_t i = 0; i < r.ops.size(); ++i) {
            auto bound = bind(r, i, waits);
            if (!bound)
                return events_.finished(r, bound.error());
            if (bound.value() == progress::pending) {
                hungry_.push_back(&r);
                return;
            }
        }
        // Memory is there as soon as it is handed out.
        if (std::ranges::all_of(r.ops, [this](const bound_op& o) { return is_allocation(o); }))
            return events_.finished(r, {});
        launch(r, *lane.value(), std::move(waits));
    }

    result<lane*> add_lane(priority p)
    {
        auto s = backend_->make_stream(p);
        if (!s)
            return failed(s.error());
        return lanes_.emplace_back(std::make_unique<lane>(std::move(s).value(), clock_.add_lane(), events_)).get();
    }

    result<lane*> lane_for(const request& r)
    {
        BOOST_OUTCOME_TRY(auto key, choice_.choose(r.ops.front().info->lib, r.options));
        if (lane_of_key_[key] == no_lane) {
            BOOST_OUTCOME_TRY(auto* made, add_lane(lane_choice::priority_of(key)));
            lane_of_key_[key] = made->id;
        }
        return lanes_[static_cast<std::size_t>(lane_of_key_[key])].get();
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
            return errc::unsupported_op;
        const auto& fields = o.info->operands;
        for (std::size_t f = 0; f < fields.size(); ++f) {
            const any_ref& ref = operand_of(o, f);
            BOOST_OUTCOME_TRY(auto* found, table_.find(ref, fields[f].type));
            o.operands[f] = static_cast<char*>(found->memory) + ref.offset * size_of(ref.type);
            found->log.collect(fields[f].mode, waits);
            uses_.push_back({ref.slot, fields[f].mode});
        }
        if (!o.info->may_overlap && has_overlap(o))
            return errc::overlap;
        return progress::passed;
    }

    // By id: each shared library has descriptions of its own.
    bool is_allocation(const bound_op& o) const noexcept { return o.info->id == allocation_id_; }

    // Allocations have a lane of their own, which no op ever holds up.
    result<progress> allocate(bound_op& o)
    {
        const auto& op = o.template as<allocate_op>();
        if (!allocation_lane_) {
            BOOST_OUTCOME_TRY(allocation_lane_, add_lane(priority::high));
        }
        auto memory = backend_->allocate(allocation_lane_->work, *op.bytes(), op.kind);
        if (!memory)
            return failed(memory.error());
        if (!memory.value())
            return progress::pending;
        const any_ref made = table_.insert(memory.value(), op.count, op.type, op.kind);
        *static_cast<allocation*>(o.reply) = {made, op.kind == memory_kind::managed ? memory.value() : nullptr};
        uses_.push_back({made.slot, access::write});
        ++allocation_lane_->last_ticket;
        ++allocation_lane_->taken_off;
        table_.log(made.slot).note(access::write, {allocation_lane_->id, allocation_lane_->last_ticket});
        return progress::passed;
    }

    void launch(request& r, lane& l, frontier waits)
    {
        const std::uint64_t ticket = ++l.last_ticket;
        for (const use& u : uses_)
            table_.log(u.slot).note(u.mode, {l.id, ticket});
        departure d{&r, ticket, std::move(waits)};
        if (!l.departures.empty() || !depart(l, d))
            l.departures.push_back(std::move(d));
    }

    /// Puts the request on the lane's stream. False: not all of it yet.
    bool depart(lane& l, departure& d)
    {
        request& r = *d.who;
        if (d.next_op == 0 && !d.launched) {
            for (const point& p : d.waits)
                if (lanes_[p.lane]->taken_off < p.ticket && p.lane != l.id)
                    return false;
            for (const point& p : d.waits)
                if (!r.outcome && clock_.must_wait(l.id, p))
                    r.outcome = hold_back(l, p);
        }
        for (; d.next_op < r.ops.size() && !r.outcome; ++d.next_op) {
            bound_op& o = r.ops[d.next_op];
            if (is_allocation(o))
                continue;
            auto started = backend_->enqueue(l.work, o);
            d.launched = true;
            if (!started)
                r.outcome = failed(started.error());
            else if (started.value() == progress::pending)
                return false;
        }
        // Work whose end cannot be known is as good as lost.
        if (auto ec = l.take_off(*backend_, d.ticket, r))
            condemn(ec);
        progressed_ = true;
        return true;
    }

    /// Goes on with what was waiting for the backend, or for what waited for it.
    void go_on()
    {
        for (request* r : std::exchange(hungry_, {}))
            start(*r);
        for (bool moved = true; moved && !dying_;) {
            moved = false;
            for (auto& l : lanes_)
                while (!l->departures.empty() && !dying_ && depart(*l, l->departures.front())) {
                    l->departures.pop_front();
                    moved = true;
                }
        }
    }

    error_code hold_back(lane& l, point p)
    {
        lane& other = *lanes_[p.lane];
        if (&other != allocation_lane_)
            return ordered(backend_->wait(l.work, other.end_of(p.ticket)));
        // Nobody waits for an allocation but the first op that uses it, so there the event is recorded, for all
        // allocations so far.
        (void)clock_.must_wait(l.id, {p.lane, other.last_ticket});
        if (auto ec = backend_->record(other.watched, other.work))
            return ordered(ec);
        return ordered(backend_->wait(l.work, other.watched));
    }

    // Work whose order cannot be known is as good as lost.
    error_code ordered(error_code ec) noexcept
    {
        if (!ec)
            return ec;
        condemn(ec);
        return verdict();
    }

    // An op that waited for another on a second lane must not be seen to end before it. The other has
    // passed by then, but perhaps after its lane was looked at; so every lane is looked at once more.
    bool sweep(clock::time_point now)
    {
        std::size_t busy_lanes = 0;
        for (auto& l : lanes_)
            busy_lanes += !l->flights.empty();
        look(now);
        if (busy_lanes > 1 && !landed_.empty()) {
            look(now);
            std::ranges::sort(landed_, {}, &request::sequence);
        }
        for (request* r : landed_)
            events_.finished(*r, r->outcome);
        const bool any = std::exchange(touched_, false);
        landed_.clear();
        return any;
    }

    void look(clock::time_point now)
    {
        for (auto& l : lanes_) {
            auto passed = l->count_passed(*backend_);
            if (!passed) {
                failed(passed.error());
                return;
            }
            if (passed.value() == 1)
                learn(*l, now);
            if (passed.value() > 0) {
                l->last_landing = now;
                l->overdue = false;
            }
            for (std::size_t n = 0; n < passed.value(); ++n)
                land(*l);
        }
    }

    /// From one that landed alone: of several, nobody knows when.
    void learn(const lane& l, clock::time_point now) noexcept
    {
        const auto taken = now - l.began();
        const auto kind = l.flights.front().kind;
        if (polling_)
            forecast_.saw(kind, taken);
        else if (l.overdue)
            forecast_.ended_after(kind, taken);
        else
            forecast_.ended_before(kind, taken);
    }

    void land(lane& l)
    {
        const auto f = std::move(l.flights.front());
        l.flights.pop_front();
        touched_ = true;
        clock_.pass({l.id, f.ticket});
        for (auto& o : f.who->ops)
            if (auto ec = backend_->finish(o); ec && !f.who->outcome)
                f.who->outcome = ec;
        landed_.push_back(f.who);
    }

    completion_rule::forecast forecast() const noexcept
    {
        completion_rule::forecast first;
        if (options_.completion != completion::adaptive)
            return first;
        bool reliable = true;
        for (auto& l : lanes_) {
            if (l->flights.empty())
                continue;
            const auto outlook = forecast_.of(l->flights.front().kind);
            reliable &= outlook.reliable;
            if (outlook.expected.count() > 0 && l->began() + outlook.expected < first.end)
                first = {l->began() + outlook.expected, outlook.expected};
        }
        first.reliable = reliable;
        return first;
    }

    // A notification does not fire behind a fault, so somebody has to ask.
    void look_for_faults(clock::time_point now)
    {
        const bool idle = !outstanding();
        if (idle || next_look_ == clock::time_point::max()) {
            next_look_ = idle ? clock::time_point::max() : now + options_.monitor_interval;
            return;
        }
        if (now < next_look_)
            return;
        next_look_ = now + options_.monitor_interval;
        failed(backend_->status());
        if (options_.hang_timeout <= std::chrono::nanoseconds(0) || dying_)
            return;
        for (auto& l : lanes_)
            if (const request* r = l->oldest(); r && now - r->launched > options_.hang_timeout)
                condemn(errc::context_lost);
    }

    /// Passes an error on; when it means that the context is dead, begins the end.
    error_code failed(error_code ec) noexcept
    {
        if (!ec)
            return ec;
        const fault f = B::classify(ec);
        if (f != fault::context_lost && f != fault::device_lost)
            return ec;
        condemn(ec);
        return f == fault::device_lost ? errc::device_lost : errc::context_lost;
    }

    void condemn(error_code why) noexcept
    {
        if (std::exchange(dying_, true))
            return;
        why_ = why;
        backend_->abort();
    }

    errc verdict() const noexcept
    {
        return B::classify(why_) == fault::device_lost ? errc::device_lost : errc::context_lost;
    }

    next_turn die(clock::time_point now)
    {
        if (!backend_->status())
            return {next_turn::kind::sleep, now + dying_interval};
        if (std::exchange(dead_, true))
            return {};
        for_each_outstanding([&](request& r) { events_.finished(r, verdict()); });
        events_.lost(why_);
        return {};
    }

    /// Returns the memory, in stream order when one lane still uses it. False: not yet.
    bool give_back(const retired_buffer& b) noexcept
    {
        frontier uses;
        b.log.collect_uses(clock_, uses);
        // Whoever uses the memory has waited for its allocation.
        if (const auto made = std::ranges::find(uses, allocation_lane_->id, &point::lane); made != uses.end())
            uses.erase(made);
        const bool one_lane = uses.size() == 1 && b.kind == memory_kind::device &&
                              lanes_[uses.front().lane]->taken_off >= uses.front().ticket;
        if (!uses.empty() && !one_lane)
            return false;
        auto& l = uses.empty() ? *allocation_lane_ : *lanes_[uses.front().lane];
        backend_->release(l.work, b.memory, b.bytes, b.kind);
        return true;
    }

    void retire_unused() noexcept
    {
        std::erase_if(retiring_, [this](const retired_buffer& b) { return give_back(b); });
    }

    bool outstanding() const noexcept
    {
        return !hungry_.empty() || std::ranges::any_of(lanes_, [](const auto& l) { return l->busy(); });
    }

    template <class Function>
    void for_each_outstanding(Function function)
    {
        for (auto& l : lanes_) {
            for (; !l->flights.empty(); l->flights.pop_front())
                function(*l->flights.front().who);
            for (; !l->departures.empty(); l->departures.pop_front())
                function(*l->departures.front().who);
        }
        for (request* r : std::exchange(hungry_, {}))
            function(*r);
    }

    /// A thread is stuck in the driver of a context that is dead or hangs, which therefore stays for good.
    static void bury(std::unique_ptr<B> b) noexcept
    {
        static auto& graves = *new std::forward_list<std::unique_ptr<B>>;
        static std::mutex mutex;
        const std::scoped_lock lock(mutex);
        try {
            graves.push_front(nullptr);
        } catch (const std::bad_alloc&) {
            // Buried without a name.
            (void)b.release();
            return;
        }
        graves.front() = std::move(b);
    }

    void stop() noexcept
    {
        const bool condemned = std::exchange(dying_, true);
        if (!backend_)
            return;
        backend_->listen({});
        backend_->abort();
        const auto until = condemned ? clock::now() + longest_farewell : clock::time_point::max();
        bool free = !condemned || backend_->quiet();
        for (auto& l : lanes_)
            free &= l->stop(until);
        if (free)
            return backend_.reset();
        bury(std::move(backend_));
    }

    std::unique_ptr<B> backend_;
    context_events& events_;
    context_options options_;
    buffer_table table_;
    lane_choice choice_;
    completion_rule rule_;
    lane_clock clock_;
    end_forecast forecast_;
    std::vector<int> lane_of_key_;
    std::vector<std::unique_ptr<lane>> lanes_;
    lane* allocation_lane_ = nullptr;
    const std::uint64_t allocation_id_ = info_of<allocate_op>().id;
    std::vector<use> uses_;
    std::vector<retired_buffer> retiring_;
    /// Requests whose memory is being asked for.
    std::vector<request*> hungry_;
    std::vector<request*> landed_;
    clock::time_point next_look_ = clock::time_point::max();
    error_code why_;
    bool progressed_ = false;
    bool polling_ = false;
    bool touched_ = false;
    bool dying_ = false;
    bool dead_ = false;
};

} // namespace coaccel::detail

#endif
