#ifndef COACCEL_CONTEXT_ENGINE_HPP
#define COACCEL_CONTEXT_ENGINE_HPP

#include "context/buffers/buffer_allocator.hpp"
#include "context/buffers/operands.hpp"
#include "context/completion/completion_scanner.hpp"
#include "context/completion/wait_policy.hpp"
#include "context/context.hpp"
#include "context/faults/fault_monitor.hpp"
#include "context/lanes/lane_set.hpp"
#include "context/lanes/op_states.hpp"
#include "posix/machine_limits.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// A context on top of any backend: takes a request from its submission through a lane to its completion. Its parts are
/// lane_set, buffer_allocator, completion_scanner, and fault_monitor for faults and shutdown.
template <backend B>
class engine final : public context {
public:
    engine(std::unique_ptr<B> b, context_identity identity, context_events& events, const context_options& options)
        : backend_(std::move(b)), events_(events), options_(options), rule_(options, shared_cpus()),
          lanes_(*backend_, events, options.lanes), buffers_(*backend_, lanes_, events, identity),
          faults_(*backend_, options), scanner_(*backend_, lanes_, faults_, events)
    {
        backend_->listen({[](void* self) noexcept { static_cast<engine*>(self)->events_.wake(); }, this});
    }

    ~engine() override
    {
        faults_.stop(backend_, lanes_);
        (void)engine::take_owners();
    }

    std::string_view backend_name() const noexcept override { return B::name; }
    bool replaceable() const noexcept override { return B::replaceable; }
    void adopt(context_identity identity) noexcept override { buffers_.adopt(identity); }
    const op_info* describe(std::uint64_t op_id) const noexcept override { return backend_->describe(op_id); }

    void add_warm_up(op_list& ops, const ref<float>& scratch) const override
    {
        if constexpr (requires { B::add_warm_up(ops, scratch); })
            B::add_warm_up(ops, scratch);
    }

    error_code pin(std::span<std::byte> memory) override
    {
        [[maybe_unused]] const entry here(*this);
        return backend_->pin(memory);
    }

    bool can_export() const noexcept override
    {
        if constexpr (requires { backend_->can_export(); })
            return backend_->can_export();
        return false;
    }

    result<unique_fd> export_buffer(const any_ref& buffer, memory_access access) override
    {
        if (faults_.dying())
            return errc::context_lost;
        if constexpr (requires { backend_->export_memory(nullptr, 0, access); }) {
            [[maybe_unused]] const entry here(*this);
            BOOST_OUTCOME_TRY(auto* const found, buffers_.find_exportable(buffer));
            auto made = backend_->export_memory(found->memory, found->size, access);
            if (!made)
                return faults_.failed(made.error());
            return made;
        }
        return errc::unsupported_op;
    }

    result<any_ref> import_buffer(unique_fd descriptor, const imported_buffer& what) override
    {
        if (faults_.dying())
            return errc::context_lost;
        if constexpr (requires { backend_->import_memory(std::move(descriptor), 0, what.access); }) {
            [[maybe_unused]] const entry here(*this);
            BOOST_OUTCOME_TRYV(buffers_.prepare());
            const auto memory = backend_->import_memory(std::move(descriptor), what.bytes(), what.access);
            if (!memory)
                return faults_.failed(memory.error());
            return buffers_.add_imported(memory.value(), what);
        }
        return errc::unsupported_op;
    }

    std::size_t live_buffers() const noexcept override { return buffers_.live(); }
    bool accepting() const noexcept override { return !faults_.dying(); }
    hardware_info hardware() const override { return backend_->hardware(); }
    std::shared_ptr<pinned_memory> pinned() const override { return backend_->pinned(); }

    memory_info memory() const noexcept override
    {
        [[maybe_unused]] const entry here(*this);
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
        [[maybe_unused]] const entry here(*this);
        now_ = now;
        start(r);
    }

    void release(const any_ref& buffer) noexcept override
    {
        [[maybe_unused]] const entry here(*this);
        if (faults_.dying())
            buffers_.forget(buffer);
        else
            buffers_.release(buffer);
    }

    next_turn turn(clock::time_point now, clock::duration patience) override
    {
        [[maybe_unused]] const entry here(*this);
        now_ = now;
        const bool ended = !faults_.dying() && scanner_.poll(now, polling_);
        progressed_ |= ended;
        if (!faults_.dying()) {
            // First, because requests may wait for this memory.
            buffers_.give_back_unused();
            go_on();
        }
        if (!faults_.dying())
            faults_.look(lanes_, !outstanding(), now);
        if (faults_.dying())
            return die(now);
        const auto next = rule_.decide(outstanding(), std::exchange(progressed_, false), now, expected_end());
        using action = wait_policy::action;
        polling_ = next.what == action::poll || next.what == action::arm_and_poll;
        if (next.what == action::idle)
            return {};
        if (next.due)
            for (auto& l : lanes_)
                l->overdue = true;
        // A request that completed between the poll and the arming triggers the notification at once.
        if (next.what == action::arm || next.what == action::arm_and_poll)
            for (auto& l : lanes_)
                faults_.failed(l->arm(*backend_, options_.completion));
        if (polling_ && patience > clock::duration::zero())
            look_on(std::min(clock::now() + (ended ? std::min(patience, gathering) : patience), next.until));
        if (faults_.dying())
            return die(now);
        // An extra turn without work would delay the next request.
        if (!outstanding()) {
            polling_ = false;
            return {};
        }
        return {polling_ ? next_turn::kind::again : next_turn::kind::sleep,
                std::min(faults_.next_look(), next.look_at)};
    }

    void drop(async_op_list& out) noexcept override
    {
        faults_.stop(backend_, lanes_);
        for_each_outstanding([&out](request& r) { out.push_back(r); });
    }

    std::unique_ptr<owner_list> take_owners() noexcept override
    {
        auto owners = buffers_.take_owners();
        if (owners && faults_.work_remains()) {
            leak_registry<owner_list>::add(std::move(owners));
            return nullptr;
        }
        return owners;
    }

    void disown(async_op_list& out) noexcept override
    {
        for_each_outstanding([&out](request& r) { out.push_back(r); });
    }

private:
    using lane = detail::lane<B>;
    using queued_request = typename lane::queued_request;

    struct backend_scope {
        explicit backend_scope(B& b) noexcept : here(b.enter()) {}
        decltype(std::declval<B&>().enter()) here;
    };

    /// Enters the backend for one call, unless the caller has entered the context.
    class entry {
    public:
        explicit entry(const engine& e) noexcept
        {
            if (!e.entered_)
                here_.emplace(*e.backend_);
        }

    private:
        std::optional<backend_scope> here_;
    };

    void enter() noexcept override { entered_.emplace(*backend_); }
    void leave() noexcept override { entered_.reset(); }

    /// Completions cluster: after one, wait this long for more and report them in one turn, because a turn for each
    /// costs more.
    static constexpr clock::duration gathering = std::chrono::microseconds(1);
    static constexpr auto dying_interval = std::chrono::milliseconds(1);

    struct use {
        std::uint32_t slot;
        access mode;
        element_range where;
        /// Unless zero, a use of this state instead of a buffer.
        std::uint64_t state = 0;
    };

    static unsigned shared_cpus()
    {
        if constexpr (requires { requires B::runs_on_cpu; })
            return usable_cpus();
        return wait_policy::own_processors;
    }

    void start(request& r)
    {
        if (faults_.dying())
            return events_.finished(r, errc::context_lost);
        if (buffers_.memory_is_short() && std::ranges::any_of(r.ops, is_allocation))
            return awaiting_memory_.push_back(&r);
        if (auto ec = lanes_.check(r.options))
            return events_.finished(r, ec);
        // Filled in place: for a move of its `waits`, g++ 12 prints a false -Wstringop-overread.
        queued_request d{&r, 0, {}};
        uses_.clear();
        for (std::size_t i = 0; i < r.ops.size(); ++i) {
            auto bound = bind(r, i, d.waits);
            if (!bound)
                return events_.finished(r, placed(r, i, bound.error()));
            if (bound.value() == progress::pending) {
                awaiting_memory_.push_back(&r);
                if (buffers_.memory_is_short())
                    first_awaiting_memory_ = &r;
                return end_given_up();
            }
        }
        // An allocation has completed as soon as it returns the memory.
        if (std::ranges::all_of(r.ops, [](const bound_op& o) { return makes_buffer(o.info->role); }))
            return events_.finished(r, {});
        const auto lane = lanes_.choose(r.ops.front().info->lib, r.options, d.waits);
        if (!lane)
            return events_.finished(r, faults_.failed(lane.error()));
        launch(*lane.value(), d);
    }

    /// Pending: memory is not available yet; the whole request must be started again.
    result<progress> bind(request& r, std::size_t i, frontier& waits)
    {
        r.prepare(i);
        bound_op& o = r.ops[i];
        if (auto ec = o.info->check(o.op))
            return ec;
        if (is_allocation(o))
            return allocate(o);
        if (o.info->role == op_role::adopt)
            return adopt(o);
        // The plain code has no message of the backend.
        if (auto ec = backend_->find_code(o))
            return ec == make_error_code(errc::unsupported_op) ? not_implemented(*o.info, B::name) : ec;
        const auto& fields = o.info->operands;
        for (std::size_t f = 0; f < fields.size(); ++f) {
            const any_ref& ref = operand_of(o, f);
            if (has_none(fields[f], ref)) {
                o.operands[f] = nullptr;
                continue;
            }
            const auto looked_up = buffers_.find(ref, fields[f].type);
            if (!looked_up)
                return buffers_.refusal(o, f, looked_up.error());
            auto* const found = looked_up.value();
            o.operands[f] = static_cast<char*>(found->memory) + ref.offset * size_of(ref.type);
            const auto where = elements_of(ref, found->size);
            found->log.collect(fields[f].mode, where, waits);
            uses_.push_back({ref.slot, fields[f].mode, where});
        }
        if (const auto state = op_states::id_of(o)) {
            states_.collect(state, waits);
            uses_.push_back({0, access::write, all_elements, state});
        }
        if (const auto two = o.info->may_overlap ? std::nullopt : find_overlap(o))
            return overlap_error(o, two->first, two->second);
        return progress::passed;
    }

    static bool is_allocation(const bound_op& o) noexcept { return o.info->role == op_role::allocate; }

    result<progress> allocate(bound_op& o)
    {
        auto& made = *static_cast<allocation*>(o.reply);
        auto done = buffers_.allocate(o.template as<allocate_op>(), made);
        if (!done)
            done = allocation_error(o, faults_.failed(done.error()));
        else if (done.value() == progress::passed)
            uses_.push_back({made.ref.slot, access::write, all_elements});
        return done;
    }

    result<progress> adopt(bound_op& o)
    {
        const auto& op = o.template as<adopt_op>();
        if constexpr (requires { backend_->check_memory(op); })
            if (auto ec = faults_.failed(backend_->check_memory(op)))
                return ec;
        auto& made = *static_cast<allocation*>(o.reply);
        made = {buffers_.adopt(op), nullptr};
        uses_.push_back({made.ref.slot, access::write, all_elements});
        return progress::passed;
    }

    void launch(lane& l, queued_request& d)
    {
        l.last_ticket += lane::tickets_for(d.who->ops.size());
        d.ticket = l.last_ticket;
        const point here{l.id, d.ticket};
        for (const use& u : uses_)
            if (u.state != 0)
                states_.note(u.state, here, lanes_.order());
            else
                buffers_.log(u.slot).note(u.mode, u.where, here, lanes_.order());
        if (!l.queued.empty() || !put_on_stream(l, d))
            l.queued.push_back(std::move(d));
    }

    /// Puts the request on the lane's stream. False: some of it is not on the stream yet.
    bool put_on_stream(lane& l, queued_request& d)
    {
        request& r = *d.who;
        if (!l.has_room())
            return false;
        if (d.next_op == 0 && !d.launched) {
            if (auto ec = l.settle(*backend_))
                r.outcome = faults_.fatal(ec);
            for (const point& p : d.waits)
                if (!lanes_.is_on_stream(p) && p.lane != l.id)
                    return false;
            for (const point& p : d.waits)
                if (!r.outcome && lanes_.must_wait(l, p))
                    r.outcome = faults_.fatal(lanes_.hold_back(l, l.last_on_stream + 1, p));
        }
        for (; d.next_op < r.ops.size() && !r.outcome; ++d.next_op) {
            if (d.next_op == d.next_mark) {
                d.next_mark += lane::mark_interval;
                mark(l);
            }
            if (!l.has_room())
                return false;
            bound_op& o = r.ops[d.next_op];
            if (makes_buffer(o.info->role))
                continue;
            const auto ready = backend_->prepare(l.work, o);
            d.launched = true;
            if (!ready)
                r.outcome = faults_.failed(ready.error());
            else if (ready.value() == readiness::pending)
                return false;
            else if (ready.value() == readiness::ready)
                r.outcome = faults_.failed(backend_->enqueue(l.work, o));
            l.note_commands(commands_of(o));
        }
        // Use up the remaining tickets of a request that failed midway.
        while (l.last_on_stream + 1 < d.ticket)
            mark(l);
        if (ends_on_stream(r)) {
            mark(l);
            end_on_stream(r);
            return true;
        }
        if (auto ec = l.record_end(*backend_, &r, now_))
            faults_.fatal(ec);
        progressed_ = true;
        return true;
    }

    /// Whether the caller wants to know when the request is on its stream, not when it has ended there.
    static bool ends_on_stream(const request& r) noexcept
    {
        return std::ranges::all_of(r.ops, [](const bound_op& o) { return o.info->role == op_role::record; });
    }

    void end_on_stream(request& r)
    {
        for (bound_op& o : r.ops)
            if (auto ec = backend_->finish(o); ec && !r.outcome)
                r.outcome = ec;
        events_.finished(r, r.outcome);
    }

    /// The most commands that the op puts on a stream.
    static std::size_t commands_of(const bound_op& o) noexcept
    {
        if constexpr (requires { B::commands_of(o); })
            return B::commands_of(o);
        return 1;
    }

    void mark(lane& l)
    {
        if (auto ec = l.record_end(*backend_, nullptr, now_))
            faults_.fatal(ec);
        progressed_ = true;
    }

    /// Continues requests that wait for memory, for the backend, or for such requests.
    void go_on()
    {
        end_given_up();
        if (!awaiting_memory_.empty() && buffers_.try_again())
            for (request* r : std::exchange(awaiting_memory_, {}))
                start(*r);
        for (bool moved = true; moved && !faults_.dying();) {
            moved = false;
            for (auto& l : lanes_)
                while (!l->queued.empty() && !faults_.dying() && put_on_stream(*l, l->queued.front())) {
                    l->queued.pop_front();
                    moved = true;
                }
        }
    }

    /// Ends the request that the other allocations wait behind, if its caller has given up. None of its work is on the
    /// device yet.
    void end_given_up()
    {
        if (!buffers_.memory_is_short() || first_awaiting_memory_->given_up == given_up::no)
            return;
        buffers_.end_shortage();
        std::erase(awaiting_memory_, first_awaiting_memory_);
        events_.finished(*first_awaiting_memory_, error_of(first_awaiting_memory_->given_up));
    }

    /// Polls within the turn. Another turn costs the executor a system call, and completions during it are seen late.
    void look_on(clock::time_point until)
    {
        bool ended = false;
        for (auto now = clock::now(); now < until && !ended && !faults_.dying() && !events_.has_more();
             now = clock::now())
            ended = scanner_.poll(now, polling_);
        progressed_ |= ended;
        if (ended && !faults_.dying())
            buffers_.give_back_unused();
    }

    wait_policy::expected_end expected_end() const noexcept
    {
        return options_.completion == completion::adaptive ? scanner_.expected_end() : wait_policy::expected_end{};
    }

    /// Keeps the requests until the device no longer accesses their callers' memory.
    next_turn die(clock::time_point now)
    {
        if (!faults_.is_over())
            return {next_turn::kind::sleep, now + dying_interval};
        if (std::exchange(dead_, true))
            return {};
        for_each_outstanding([this](request& r) { events_.finished(r, faults_.sticky_error()); });
        events_.lost(faults_.why(), loss_cause::fault);
        return {};
    }

    bool outstanding() const noexcept { return !awaiting_memory_.empty() || lanes_.busy(); }

    template <class Function>
    void for_each_outstanding(Function function)
    {
        for (auto& l : lanes_) {
            for (; !l->in_flight.empty(); l->in_flight.pop_front())
                if (l->in_flight.front().who)
                    function(*l->in_flight.front().who);
            for (; !l->queued.empty(); l->queued.pop_front())
                function(*l->queued.front().who);
        }
        for (request* r : std::exchange(awaiting_memory_, {}))
            function(*r);
    }

    std::unique_ptr<B> backend_;
    /// Between enter() and leave().
    std::optional<backend_scope> entered_;
    context_events& events_;
    context_options options_;
    wait_policy rule_;
    lane_set<B> lanes_;
    buffer_allocator<B> buffers_;
    op_states states_;
    fault_monitor<B> faults_;
    /// The time of the current turn or submission.
    clock::time_point now_{};
    std::vector<use> uses_;
    /// Requests that wait for memory.
    std::vector<request*> awaiting_memory_;
    /// The one that the others wait behind, while buffers_.memory_is_short().
    request* first_awaiting_memory_ = nullptr;
    bool progressed_ = false;
    bool polling_ = false;
    bool dead_ = false;
    // Last, because its table of estimates is large.
    completion_scanner<B> scanner_;
};

} // namespace coaccel::detail

#endif
