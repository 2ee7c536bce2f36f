#include "context/buffers/operands.hpp"
#include "context/faults/op_problem.hpp"
#include "host/backend.hpp"
#include "host/ops/libraries.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace coaccel::host {
namespace {

using detail::plan_load_head;
using detail::plan_load_operands;
using detail::plan_run_op;
using detail::plan_unload_op;

const op_code& code_of(const bound_op& o) noexcept
{
    return *static_cast<const op_code*>(o.code);
}

class plan_instance;

/// One run. It has its own copies of the ops that are prepared, because a run is prepared while the one before it may
/// still run.
struct prepared_run {
    explicit prepared_run(plan_instance& i) noexcept : instance(i) {}

    plan_instance& instance;
    std::vector<bound_op> ops;
    std::vector<std::vector<detail::op_unit>> replies;
    std::atomic<bool> in_use{false};
    bool timed = false;
};

/// A loaded plan: its ops with the addresses of their operands.
class plan_instance {
public:
    error_code load(const backend& b, const plan_load_head& head, void* const* operands)
    {
        const detail::plan_data& p = *head.plan;
        memory_ = static_cast<std::byte*>(operands[plan_load_operands::instance]);
        records_ = p.ops;
        for (detail::listed_op& l : records_) {
            bound_op o = l.record.bind(*l.info);
            // Again here, because this process may lack a plug-in.
            if (auto ec = l.info->check(o.op))
                return ec;
            if (auto ec = b.find_code(o))
                return ec == make_error_code(errc::unsupported_op) ? detail::not_implemented(*l.info, backend::name)
                                                                   : ec;
            for (std::size_t i = 0; i < l.info->operands.size(); ++i)
                o.operands[i] = slot_address(p, detail::operand_of(o, i), operands, plan_load_operands(p).states);
            if (code_of(o).prepare)
                prepared_.push_back(ops_.size());
            ops_.push_back(o);
        }
        bind_parameters(p, operands);
        return {};
    }

    result<prepared_run*> prepare(backend& b, stream_state& s)
    {
        prepared_run& r = unused_run();
        for (bound_op& o : r.ops) {
            o.status = {};
            o.state = nullptr;
            // No op of this backend is ever pending.
            if (auto ready = code_of(o).prepare(b, s, o); !ready)
                return ready.error();
        }
        const auto every = static_cast<std::uint64_t>(b.how().timed_runs);
        r.timed = every != 0 && runs_started_++ % every == 0;
        r.in_use.store(true, std::memory_order_relaxed);
        return &r;
    }

    error_code run(const prepared_run& r, const plan_run_op& op) const noexcept
    {
        for (const auto& a : op.staged_inputs())
            std::memcpy(memory_ + a.where.offset, a.host, a.where.bytes);
        auto prepared = prepared_.begin();
        auto bound = bound_.begin();
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            const bool is_prepared = prepared != prepared_.end() && *prepared == i;
            bound_op o = is_prepared ? r.ops[static_cast<std::size_t>(prepared - prepared_.begin())] : ops_[i];
            prepared += is_prepared;
            if (bound != bound_.end() && bound->op == i)
                o.op = (bound++)->fill();
            if (code_of(o).run)
                code_of(o).run(o);
            if (o.status)
                return o.status;
        }
        for (const auto& a : op.staged_outputs())
            std::memcpy(a.host, memory_ + a.where.offset, a.where.bytes);
        return {};
    }

private:
    /// The copy of an op that its runs use, with parameters among its values. The op itself is read while another run
    /// is prepared.
    struct op_with_values {
        struct value {
            std::uint32_t offset;
            std::uint32_t bytes;
            const void* from;
        };

        std::size_t op = 0;
        std::unique_ptr<detail::op_unit[]> copy;
        std::vector<value> values;

        /// Preconditions: no other run of the instance runs.
        const void* fill() const noexcept
        {
            for (const value& v : values)
                std::memcpy(reinterpret_cast<std::byte*>(copy.get()) + v.offset, v.from, v.bytes);
            return copy.get();
        }
    };

    void bind_parameters(const detail::plan_data& p, void* const* operands)
    {
        for (const detail::plan_binding& b : p.bindings) {
            const detail::listed_op& l = records_[b.op];
            if (bound_.empty() || bound_.back().op != b.op) {
                auto& made = bound_.emplace_back();
                made.op = b.op;
                made.copy = std::make_unique<detail::op_unit[]>(l.record.op.size());
                std::ranges::copy(l.record.op, made.copy.get());
            }
            const op_field& f = l.info->fields[b.field];
            bound_.back().values.push_back(
                {f.offset, f.size,
                 slot_address(p, detail::whole_slot(p, b.slot), operands, plan_load_operands(p).states)});
        }
    }

    prepared_run& unused_run()
    {
        for (auto& r : runs_)
            if (!r->in_use.load(std::memory_order_acquire))
                return *r;
        auto made = std::make_unique<prepared_run>(*this);
        for (const std::size_t i : prepared_) {
            bound_op& o = made->ops.emplace_back(ops_[i]);
            o.reply = made->replies.emplace_back(detail::op_units(o.info->reply_size)).data();
        }
        return *runs_.emplace_back(std::move(made));
    }

    std::byte* memory_ = nullptr;
    /// The ops themselves, and the memory for their replies, which are not used.
    std::vector<detail::listed_op> records_;
    std::vector<bound_op> ops_;
    /// The indices of the ops that are prepared.
    std::vector<std::size_t> prepared_;
    /// The ops with parameters, in order.
    std::vector<op_with_values> bound_;
    std::vector<std::unique_ptr<prepared_run>> runs_;
    std::uint64_t runs_started_ = 0;
};

/// The loaded plans of a context.
class plan_instances final : public detail::library_resources {
public:
    static constexpr library lib = library::plan;

    plan_instance* find(std::uint64_t id) noexcept
    {
        const auto found = all_.find(id);
        return found == all_.end() ? nullptr : found->second.get();
    }

    void add(std::uint64_t id, std::unique_ptr<plan_instance> i)
    {
        free_unused();
        all_.emplace(id, std::move(i));
    }

    /// Destroys the instance when the stream has reached the position.
    void remove(std::uint64_t id, stream_state& s, std::uint64_t position)
    {
        free_unused();
        const auto found = all_.find(id);
        unloaded_.push_back({std::move(found->second), &s, position});
        all_.erase(found);
    }

    std::size_t count() const noexcept override { return all_.size(); }

private:
    struct unloaded {
        std::unique_ptr<plan_instance> instance;
        stream_state* last;
        std::uint64_t position;
    };

    void free_unused() noexcept
    {
        std::erase_if(unloaded_, [](const unloaded& u) { return u.last->passed() >= u.position; });
    }

    std::map<std::uint64_t, std::unique_ptr<plan_instance>> all_;
    std::vector<unloaded> unloaded_;
};

result<readiness> load(backend& b, stream_state&, bound_op& o)
try {
    const auto& head = o.as<plan_load_head>();
    auto& all = b.resources().get<plan_instances>();
    if (all.find(head.instance))
        return detail::op_error(errc::invalid_argument, "plan.load",
                                {"instance ", head.instance, " is already loaded"});
    auto made = std::make_unique<plan_instance>();
    if (auto ec = made->load(b, head, o.operands))
        return ec;
    all.add(head.instance, std::move(made));
    if (o.reply)
        static_cast<detail::plan_loaded*>(o.reply)->recorded = 1;
    if (!b.injector().poisons_load(head.plan->name))
        return readiness::launched;
    b.injector().poison();
    return readiness::ready;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

error_code not_loaded(std::string_view op, std::uint64_t instance) noexcept
{
    return detail::op_error(errc::invalid_argument, op, {"instance ", instance, " is not loaded"});
}

result<readiness> prepare_run(backend& b, stream_state& s, bound_op& o)
try {
    const auto id = o.as<plan_run_op>().instance;
    auto* instance = b.resources().get<plan_instances>().find(id);
    if (!instance)
        return not_loaded(plan_run_op::name, id);
    BOOST_OUTCOME_TRY(o.state, instance->prepare(b, s));
    return readiness::ready;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

void run(bound_op& o) noexcept
{
    auto& r = *static_cast<prepared_run*>(std::exchange(o.state, nullptr));
    using clock = std::chrono::steady_clock;
    const bool timed = r.timed && o.reply;
    const auto start = timed ? clock::now() : clock::time_point();
    o.status = r.instance.run(r, o.as<plan_run_op>());
    // Zero means that the run was not measured.
    if (timed)
        static_cast<detail::plan_ran*>(o.reply)->nanoseconds = static_cast<std::uint64_t>(
            std::max<std::int64_t>(1, std::chrono::nanoseconds(clock::now() - start).count()));
    r.in_use.store(false, std::memory_order_release);
}

result<readiness> unload(backend& b, stream_state& s, bound_op& o)
try {
    const auto id = o.as<plan_unload_op>().instance;
    auto& all = b.resources().get<plan_instances>();
    if (!all.find(id))
        return not_loaded(plan_unload_op::name, id);
    // The engine has put this op behind the runs of the instance, which may still be on the stream.
    all.remove(id, s, s.pushed() + 1);
    return readiness::ready;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

} // namespace

// Without descriptions: the ops contain addresses, and a process that describes an op accepts it from another process.
void add_plan(op_table& table)
{
    table.add(detail::plan_load_id, {.run = [](bound_op&) noexcept {}, .prepare = load});
    table.add(info_of<plan_run_op>().id, {.run = run, .prepare = prepare_run});
    table.add(info_of<plan_unload_op>().id, {.run = [](bound_op&) noexcept {}, .prepare = unload});
}

} // namespace coaccel::host
