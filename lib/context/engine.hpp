#ifndef COACCEL_CONTEXT_ENGINE_HPP
#define COACCEL_CONTEXT_ENGINE_HPP

#include "context/buffer_table.hpp"
#include "context/completion_rule.hpp"
#include "context/context.hpp"
#include "context/hazards.hpp"
#include "context/lane_choice.hpp"
#include "context/sync_waiter.hpp"

#include <coaccel/detail/transfer_ops.hpp>

#include <boost/assert.hpp>
#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
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
    {}

    ~engine() override { stop(); }

    std::string_view backend_name() const noexcept override { return B::name; }
    std::size_t live_buffers() const noexcept override { return table_.live(); }
    memory_info memory() const noexcept override { return backend_->memory(); }
    bool accepting() const noexcept override { return !dying_; }

    void submit(request& r, clock::time_point now) override
    {
        r.launched = now;
        auto lane = lane_for(r);
        if (!lane)
            return refuse(r, lane.error());
        frontier waits;
        uses_.clear();
        for (std::size_t i = 0; i < r.ops.size(); ++i)
            if (auto ec = bind(r, i, waits))
                return refuse(r, ec);
        launch(r, lane.value(), waits);
    }

    void release(const any_ref& buffer) noexcept override
    {
        if (auto retired = table_.retire(buffer); retired && !dying_)
            if (!give_back(*retired))
                retiring_.push_back(std::move(*retired));
    }

    next_turn turn(clock::time_point now) override
    {
        if (!dying_)
            progressed_ |= sweep();
        if (!dying_)
            look_for_faults(now);
        if (dying_)
            return die(now);
        retire_unused();
        switch (rule_.decide(in_flight_ > 0, std::exchange(progressed_, false), now)) {
        case completion_rule::action::idle: return {};
        case completion_rule::action::poll: return {next_turn::kind::again, next_look_};
        case completion_rule::action::arm: break;
        }
        // What ended between the sweep and the arming is told by the notification itself.
        for (auto& l : lanes_)
            arm(*l);
        return dying_ ? die(now) : next_turn{next_turn::kind::sleep, next_look_};
    }

    void drop(pending_list& out) noexcept override
    {
        stop();
        for (auto& l : lanes_) {
            for (auto& f : l->flights)
                if (f.who)
                    out.push_back(*f.who);
            l->flights.clear();
        }
        in_flight_ = 0;
    }

private:
    using event = typename B::event;
    using stream = typename B::stream;
    static constexpr int no_lane = -1;
    static constexpr auto dying_interval = std::chrono::milliseconds(1);

    struct flight {
        event end;
        std::uint64_t ticket = 0;
        request* who = nullptr;
    };

    struct lane {
        explicit lane(stream s) : work(std::move(s)) {}

        stream work;
        lane_id id = 0;
        std::uint64_t last_ticket = 0;
        boost::circular_buffer<flight> flights{64};
        context_events* events = nullptr;
        bool armed = false;
        event watched;
        std::uint64_t watched_ticket = 0;
        std::atomic<bool> fired{false};
        sync_waiter waiter;

        static void on_notify(void* self) noexcept
        {
            auto* l = static_cast<lane*>(self);
            l->fired.store(true, std::memory_order_release);
            l->events->wake();
        }
    };

    struct use {
        std::uint32_t slot;
        access mode;
    };

    void refuse(request& r, error_code ec) noexcept { events_.finished(r, ec); }

    result<lane*> add_lane(priority p)
    {
        BOOST_OUTCOME_TRY(auto s, backend_->make_stream(p));
        auto& l = lanes_.emplace_back(std::make_unique<lane>(std::move(s)));
        l->id = clock_.add_lane();
        l->events = &events_;
        return l.get();
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

    error_code bind(request& r, std::size_t i, frontier& waits)
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
            auto found = table_.find(ref, fields[f].type);
            if (!found)
                return found.error();
            o.operands[f] = static_cast<char*>(found.value()->memory) + ref.offset * size_of(ref.type);
            found.value()->log.collect(fields[f].mode, waits);
            uses_.push_back({ref.slot, fields[f].mode});
        }
        return o.info->may_overlap || !has_overlap(o) ? error_code{} : make_error_code(errc::overlap);
    }

    // By id: each shared library has descriptions of its own.
    bool is_allocation(const bound_op& o) const noexcept { return o.info->id == allocation_id_; }

    static const any_ref& operand_of(const bound_op& o, std::size_t f) noexcept
    {
        return *reinterpret_cast<const any_ref*>(static_cast<const char*>(o.op) + o.info->operands[f].offset);
    }

    static bool has_overlap(const bound_op& o) noexcept
    {
        const auto& fields = o.info->operands;
        for (std::size_t a = 0; a < fields.size(); ++a)
            for (std::size_t b = a + 1; b < fields.size(); ++b)
                if ((writes(fields[a].mode) || writes(fields[b].mode)) && overlap(operand_of(o, a), operand_of(o, b)))
                    return true;
        return false;
    }

    // Allocations have a lane of their own, which no op ever holds up.
    error_code allocate(bound_op& o)
    {
        const auto& op = o.template as<allocate_op>();
        if (!allocation_lane_) {
            auto made = add_lane(priority::high);
            if (!made)
                return made.error();
            allocation_lane_ = made.value();
        }
        auto memory = backend_->allocate(allocation_lane_->work, *op.bytes());
        if (!memory && memory.error() == errc::out_of_memory) {
            backend_->trim();
            memory = backend_->allocate(allocation_lane_->work, *op.bytes());
        }
        if (!memory)
            return failed(memory.error());
        const any_ref made = table_.insert(memory.value(), op.count, op.type);
        *static_cast<any_ref*>(o.reply) = made;
        uses_.push_back({made.slot, access::write});
        take_off(*allocation_lane_, nullptr);
        table_.log(made.slot).note(access::write, {allocation_lane_->id, allocation_lane_->last_ticket});
        return {};
    }

    void launch(request& r, lane* l, const frontier& waits)
    {
        for (const point& p : waits)
            if (!r.outcome && clock_.must_wait(l->id, p))
                r.outcome = hold_back(*l, p);
        bool launched = false;
        for (auto& o : r.ops) {
            if (r.outcome)
                break;
            if (is_allocation(o))
                continue;
            r.outcome = failed(backend_->enqueue(l->work, o));
            launched |= !r.outcome;
        }
        // An op whose predecessors in a seq were started fails only after they have ended.
        if (!launched)
            return refuse(r, r.outcome);
        take_off(*l, &r);
        for (const use& u : uses_)
            table_.log(u.slot).note(u.mode, {l->id, l->last_ticket});
    }

    error_code hold_back(lane& l, point p) { return failed(backend_->wait(l.work, end_of(*lanes_[p.lane], p.ticket))); }

    // The event a sync_waiter blocks on is kept apart, because the ring of flights may move.
    static event& end_of(lane& l, std::uint64_t ticket) noexcept
    {
        if (ticket == l.watched_ticket)
            return l.watched;
        return l.flights[ticket - l.flights.front().ticket].end;
    }

    void take_off(lane& l, request* who)
    {
        if (l.flights.full())
            l.flights.set_capacity(l.flights.capacity() * 2);
        flight f;
        f.ticket = ++l.last_ticket;
        f.who = who;
        // Work whose end cannot be known is as good as lost.
        if (auto ec = backend_->record(f.end, l.work))
            condemn(ec);
        l.flights.push_back(std::move(f));
        ++in_flight_;
        progressed_ = true;
    }

    // An op that waited for another on a second lane must not be seen to end before it. The other has
    // passed by then, but perhaps after its lane was looked at; so every lane is looked at once more.
    bool sweep()
    {
        std::size_t busy_lanes = 0;
        for (auto& l : lanes_)
            busy_lanes += !l->flights.empty();
        look();
        if (busy_lanes > 1 && !landed_.empty()) {
            look();
            std::ranges::sort(landed_, {}, &request::sequence);
        }
        for (request* r : landed_)
            events_.finished(*r, r->outcome);
        const bool any = std::exchange(touched_, false);
        landed_.clear();
        return any;
    }

    void look()
    {
        for (auto& l : lanes_) {
            const bool fired = l->fired.exchange(false, std::memory_order_acquire);
            l->armed &= !fired;
            while (!l->flights.empty() && !(l->armed && l->waiter.busy())) {
                auto where = backend_->query(end_of(*l, l->flights.front().ticket));
                if (!where) {
                    failed(where.error());
                    return;
                }
                if (where.value() == progress::pending)
                    break;
                land(*l);
            }
        }
    }

    void land(lane& l)
    {
        const flight f = std::move(l.flights.front());
        l.flights.pop_front();
        --in_flight_;
        touched_ = true;
        clock_.pass({l.id, f.ticket});
        if (!f.who)
            return;
        for (auto& o : f.who->ops)
            if (auto ec = backend_->finish(o); ec && !f.who->outcome)
                f.who->outcome = ec;
        landed_.push_back(f.who);
    }

    void arm(lane& l)
    {
        if (l.armed || l.flights.empty())
            return;
        l.armed = true;
        const notification n{&lane::on_notify, &l};
        flight& oldest = l.flights.front();
        if (options_.completion == completion::sync) {
            l.watched = std::move(oldest.end);
            l.watched_ticket = oldest.ticket;
            failed(l.waiter.wait_for([this, e = &l.watched] { (void)backend_->synchronize(*e); }, n));
        } else {
            failed(backend_->notify(oldest.end, n));
        }
    }

    // A notification does not fire behind a fault, so somebody has to ask.
    void look_for_faults(clock::time_point now)
    {
        if (in_flight_ == 0 || next_look_ == clock::time_point::max()) {
            next_look_ = in_flight_ == 0 ? clock::time_point::max() : now + options_.monitor_interval;
            return;
        }
        if (now < next_look_)
            return;
        next_look_ = now + options_.monitor_interval;
        failed(backend_->status());
        if (options_.hang_timeout <= std::chrono::nanoseconds(0) || dying_)
            return;
        for (auto& l : lanes_)
            if (!l->flights.empty() && l->flights.front().who &&
                now - l->flights.front().who->launched > options_.hang_timeout)
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

    next_turn die(clock::time_point now)
    {
        if (!backend_->status())
            return {next_turn::kind::sleep, now + dying_interval};
        if (std::exchange(dead_, true))
            return {};
        const errc verdict = B::classify(why_) == fault::device_lost ? errc::device_lost : errc::context_lost;
        for (auto& l : lanes_) {
            while (!l->flights.empty()) {
                request* who = l->flights.front().who;
                l->flights.pop_front();
                if (who)
                    events_.finished(*who, verdict);
            }
        }
        in_flight_ = 0;
        events_.lost(why_);
        return {};
    }

    /// Returns the memory, in stream order when one lane still uses it. False: not yet.
    bool give_back(const retired_buffer& b) noexcept
    {
        frontier uses;
        b.log.collect_uses(clock_, uses);
        if (uses.size() > 1)
            return false;
        auto& l = uses.empty() ? *allocation_lane_ : *lanes_[uses.front().lane];
        backend_->release(l.work, b.memory, b.bytes);
        return true;
    }

    void retire_unused() noexcept
    {
        std::erase_if(retiring_, [this](const retired_buffer& b) { return give_back(b); });
    }

    void stop() noexcept
    {
        dying_ = true;
        if (!backend_)
            return;
        backend_->abort();
        for (auto& l : lanes_)
            l->waiter.stop();
        for (auto& l : lanes_)
            for (auto& f : l->flights)
                f.end = event{};
        for (auto& l : lanes_)
            l->watched = event{};
        backend_.reset();
    }

    std::unique_ptr<B> backend_;
    context_events& events_;
    context_options options_;
    buffer_table table_;
    lane_choice choice_;
    completion_rule rule_;
    lane_clock clock_;
    std::vector<int> lane_of_key_;
    std::vector<std::unique_ptr<lane>> lanes_;
    lane* allocation_lane_ = nullptr;
    const std::uint64_t allocation_id_ = info_of<allocate_op>().id;
    std::vector<use> uses_;
    std::vector<retired_buffer> retiring_;
    std::vector<request*> landed_;
    std::size_t in_flight_ = 0;
    clock::time_point next_look_ = clock::time_point::max();
    error_code why_;
    bool progressed_ = false;
    bool touched_ = false;
    bool dying_ = false;
    bool dead_ = false;
};

} // namespace coaccel::detail

#endif
