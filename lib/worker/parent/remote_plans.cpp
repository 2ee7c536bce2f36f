#include "context/buffers/operands.hpp"
#include "context/faults/op_problem.hpp"
#include "worker/parent/remote_context.hpp"
#include "worker/protocol/plan_codec.hpp"

// Loads and runs plans in the worker.
namespace coaccel::worker {

using detail::plan_load_head;
using detail::plan_run_op;
using detail::plan_unload_op;
using detail::request;

namespace {

bool is_load(const bound_op& o) noexcept
{
    return o.info->id == detail::plan_load_id;
}

bool is_run(const bound_op& o) noexcept
{
    return o.info->id == info_of<plan_run_op>().id;
}

} // namespace

error_code remote_context::plan_refusal(const bound_op& o) const
{
    if (is_load(o))
        return load_refusal(o);
    return is_run(o) ? run_refusal(o) : error_code();
}

error_code remote_context::load_refusal(const bound_op& o) const
{
    const auto& load = o.as<plan_load_head>();
    const detail::plan_data& p = *load.plan;
    const std::size_t count = detail::plan_load_operands(p).count;
    // The short form of the refs has no room for these.
    for (std::size_t i = 0; i < count; ++i) {
        const any_ref& r = load.refs()[i];
        const detail::plan_slot* const graphs = graph_slot_of(p, i);
        if (auto ec = buffers_.check(r, graphs ? graphs->type : dtype::u8, setup_.identity))
            return graphs
                       ? detail::operand_error(o, i, errc_of(ec), setup_.identity, buffers_.facts(r))
                       : detail::op_error(errc_of(ec), "plan.load", {"operand ", i, " is not a buffer of this device"});
    }
    if (plans_.has(p))
        return {};
    for (const detail::listed_op& listed : p.ops) {
        error_code ec = check_plan_op(*listed.info);
        if (!ec)
            ec = refusal(bound_op{.info = listed.info, .op = listed.record.op.data()});
        if (ec)
            return ec;
    }
    return {};
}

error_code remote_context::run_refusal(const bound_op& o) const
{
    const auto& op = o.as<plan_run_op>();
    const any_ref& memory = op.memory.raw;
    // A worker treats memory that is not that of the instance as a protocol error.
    if (auto ec = buffers_.check(memory, dtype::u8, setup_.identity))
        return detail::operand_error(o, 0, errc_of(ec), setup_.identity, buffers_.facts(memory));
    for (const auto& arguments : {op.staged_inputs(), op.staged_outputs()})
        for (const detail::run_argument& a : arguments)
            if (a.where.bytes == 0 || a.where.bytes > detail::largest_staged_argument)
                return detail::op_error(errc::invalid_argument, plan_run_op::name,
                                        {"a staged argument has ", a.where.bytes, " bytes, the limit is ",
                                         detail::largest_staged_argument});
    const std::uint64_t bytes = staged_run(op, *setup_.memory).bytes();
    if (bytes <= setup_.memory->bytes())
        return {};
    return detail::op_error(
        errc::invalid_argument, plan_run_op::name,
        {"its arguments have ", bytes, " bytes, and worker_options::staging_bytes is ", setup_.memory->bytes()});
}

/// Sends what a load needs, if the request is one.
error_code remote_context::send_plan(const request& r)
{
    const bound_op& o = r.ops.front();
    if (!is_load(o))
        return {};
    const auto& load = o.as<plan_load_head>();
    if (!plans_.has(*load.plan))
        if (auto ec = kernels_.send(load.plan->ops))
            return ec;
    return plans_.add(load);
}

/// Returns whether the request is a load or a run of a plan; it has then been sent, or waits.
bool remote_context::start_plan(request& r)
{
    const bound_op& o = r.ops.front();
    if (is_load(o))
        send_load(r);
    else if (is_run(o))
        start_run(r);
    else
        return false;
    return true;
}

void remote_context::send_load(request& r)
{
    const auto& op = r.ops.front().as<plan_load_head>();
    const std::size_t count = detail::plan_load_operands(*op.plan).count;
    const std::uint64_t id = enlist({.who = &r});
    const load_frame frame{.head = head_for(id, r),
                           .plan = plans_.number_of(*op.plan),
                           .instance = op.instance,
                           .chain = op.chain,
                           .refs = {op.refs(), op.refs() + count}};
    put_load(outgoing_.begin(), frame);
    if (outgoing_.fits())
        return outgoing_.post();
    (void)in_flight_.take(id);
    complete(
        r, detail::op_error(errc::invalid_argument, "plan.load",
                            {"the plan has ", count - 1, " constants and states, too many for a worker: the load has ",
                             outgoing_.size(), " bytes, the limit is ", outgoing_.max_size()}));
}

void remote_context::start_run(request& r)
{
    const auto& op = r.ops.front().as<plan_run_op>();
    const staged_run run(op, *setup_.memory);
    std::optional<std::uint64_t> block;
    if (run.bytes() > 0 && !(block = setup_.memory->take(run.bytes()))) {
        // Pinned buffers may occupy the area for any time, so the wait must be one that the caller can end.
        const auto given_up = splits_.whole(r).given_up;
        if (given_up != detail::given_up::no)
            return complete(r, detail::error_of(given_up));
        return held_.add(r);
    }
    const std::uint64_t id = enlist({.who = &r, .block = block, .into_pinned = run.into_pinned(), .run = true});
    run_.head = head_for(id, r);
    run_.memory = op.memory.raw;
    run_.instance = op.instance;
    run_.chain = op.chain;
    run.fill(block.value_or(0), run_);
    put_run(outgoing_.begin(), run_);
    if (outgoing_.fits())
        return outgoing_.post();
    (void)in_flight_.take(id);
    if (block)
        setup_.memory->give_back(*block);
    complete(r, detail::op_error(errc::invalid_argument, plan_run_op::name,
                                 {"its ", op.input_count + op.output_count, " arguments take ", outgoing_.size(),
                                  " bytes of a message, the limit is ", outgoing_.max_size()}));
}

request_head remote_context::head_for(std::uint64_t id, const request& r) noexcept
{
    return {id, r.options, next_injected_fault(1)};
}

void remote_context::complete(request& r, const error_code& ec) noexcept
{
    const bound_op& o = r.ops.front();
    if (o.info->lib == library::plan && !end_.dying()) {
        if (is_load(o) && ec)
            plans_.remove(o.as<plan_load_head>().instance);
        else if (o.info->id == info_of<plan_unload_op>().id)
            plans_.remove(o.as<plan_unload_op>().instance);
    }
    if (splits_.empty() || !splits_.is_part(r))
        return events_.finished(r, ec);
    const auto ended = r.ended;
    if (const auto whole = splits_.ended(r, ec)) {
        whole->who->ended = ended;
        events_.finished(*whole->who, whole->ec);
    }
}

} // namespace coaccel::worker
