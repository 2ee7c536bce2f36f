#include "cuda/plan/plan_instance.hpp"

#include "context/buffers/operands.hpp"
#include "context/faults/op_problem.hpp"
#include "cuda/backend.hpp"
#include "cuda/driver/nvtx_range.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace coaccel::cuda {
namespace {

using detail::plan_load_operands;

const op_code& code_of(const bound_op& o) noexcept
{
    return *static_cast<const op_code*>(o.code);
}

} // namespace

plan_instance::plan_instance(backend& b, copy_kernels& copies, const detail::plan_load_head& head,
                             void* const* operands)
    : id(head.instance), chain(head.chain), backend_(b), copies_(copies), plan_(*head.plan),
      operands_(operands, operands + plan_load_operands(plan_).count), records_(plan_.ops),
      arguments_(b, plan_, reinterpret_cast<CUdeviceptr>(operands_[plan_load_operands::instance])), sequence_(b),
      job_(b.blocking())
{
    ops_.reserve(records_.size());
    for (auto& r : records_)
        ops_.push_back(r.record.bind(*r.info));
    bind(states::real);
    bind_parameters();
}

void plan_instance::bind_parameters()
{
    // The ops have addresses of its elements.
    scalars_.reserve(plan_.bindings.size());
    for (const detail::plan_binding& b : plan_.bindings) {
        bound_op& o = ops_[b.op];
        const op_field& f = o.info->fields[b.field];
        if (f.variable == op_field::parameter::by_value) {
            values_.add(b.op, f, plan_.slots[b.slot].offset - plan_.staged_inputs.offset);
            continue;
        }
        const any_ref slot = detail::whole_slot(plan_, b.slot);
        scalars_.push_back({f.offset, slot_address(plan_, slot, operands_.data(), plan_load_operands(plan_).states)});
        o.scalars = {o.scalars.empty() ? &scalars_.back() : o.scalars.data(), o.scalars.size() + 1};
    }
}

error_code plan_instance::find_codes()
{
    for (bound_op& o : ops_) {
        // Again here, because this process may lack a plug-in.
        if (auto ec = o.info->check(o.op))
            return ec;
        if (auto ec = backend_.find_code(o))
            return ec == make_error_code(errc::unsupported_op) ? detail::not_implemented(*o.info, backend::name) : ec;
    }
    return {};
}

bool plan_instance::recordable() const noexcept
{
    return std::ranges::all_of(ops_,
                               [](const bound_op& o) { return o.info->find_obstacle(o.op) == capture_obstacle::none; });
}

void plan_instance::bind(states which) noexcept
{
    const plan_load_operands at(plan_);
    const std::size_t used = which == states::real ? at.states : at.spare_states;
    for (bound_op& o : ops_)
        for (std::size_t i = 0; i < o.info->operands.size(); ++i)
            o.operands[i] = slot_address(plan_, detail::operand_of(o, i), operands_.data(), used);
}

error_code plan_instance::wait_for(CUstream s) noexcept
{
    return backend_.check(backend_.api().cuStreamSynchronize(s));
}

error_code plan_instance::clear(CUstream s) noexcept
{
    // The first launch of a kernel loads it, which is not possible in a capture.
    if (auto ec = arguments_.enqueue_inputs(s))
        return ec;
    if (auto ec = arguments_.enqueue_outputs(s))
        return ec;
    const auto clear = [&](void* memory, std::uint64_t bytes) {
        const auto at = reinterpret_cast<CUdeviceptr>(memory);
        return bytes == 0 ? error_code() : backend_.check(backend_.api().cuMemsetD8Async(at, 0, bytes, s));
    };
    if (auto ec = clear(operands_[plan_load_operands::instance], plan_.instance_bytes))
        return ec;
    const auto copy = [&](void* from, void* to, std::uint64_t bytes) {
        return backend_.check(backend_.api().cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                                               reinterpret_cast<CUdeviceptr>(from), bytes, s));
    };
    const plan_load_operands at(plan_);
    for (std::size_t i = 0; i < plan_.states.size(); ++i) {
        void* const spare = operands_[at.spare_states + i];
        const std::uint64_t bytes = plan_.slots[plan_.states[i]].bytes();
        if (auto ec = plan_.over_buffers ? copy(operands_[at.states + i], spare, bytes) : clear(spare, bytes))
            return ec;
    }
    return {};
}

error_code plan_instance::capture(stream_state& s)
{
    const driver_api& api = backend_.api();
    if (auto ec = backend_.check(api.cuStreamBeginCapture(s.native, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)))
        return ec;
    error_code ec = arguments_.capture_inputs(s.native);
    for (std::size_t i = 0; i < ops_.size() && !ec; ++i) {
        ec = code_of(ops_[i]).enqueue(backend_, s, ops_[i]);
        if (!ec)
            ec = values_.captured(backend_, s.native, i);
    }
    if (!ec)
        ec = arguments_.capture_outputs(s.native);
    if (backend_.dead())
        return ec ? ec : make_error_code(errc::context_lost);
    // Also after an error, because the stream would stay in capture. The error of the capture itself comes first: what
    // a library reports in an invalid capture does not name the cause.
    if (auto broken = backend_.check(api.cuStreamEndCapture(s.native, &graph_)))
        ec = broken;
    if (ec && graph_ && !backend_.dead())
        (void)api.cuGraphDestroy(std::exchange(graph_, nullptr));
    return ec;
}

error_code plan_instance::instantiate(CUstream s) noexcept
{
    const driver_api& api = backend_.api();
    error_code ec = backend_.check(api.cuGraphInstantiateWithFlags(&exec_, graph_, 0));
    if (ec)
        exec_ = nullptr;
    else
        ec = backend_.check(api.cuGraphUpload(exec_, s));
    if (!backend_.dead() && (ec || (values_.empty() && !arguments_.changes_graph())))
        (void)api.cuGraphDestroy(std::exchange(graph_, nullptr));
    return ec;
}

result<readiness> plan_instance::prepare_run(stream_state& s, bound_op& run)
{
    if (runs_freely()) {
        run.state = this;
        return readiness::ready;
    }
    if (job_.running() || (run_ && run_ != &run)) {
        // The engine has put this run behind the last one, so what is on the stream includes it.
        BOOST_OUTCOME_TRY(const auto done, job_.run([this, native = s.native] { return wait_for(native); }));
        if (done == progress::pending)
            return readiness::pending;
        // Unless the engine has finished it meanwhile.
        if (run_)
            finish_run();
    }
    if (!run_) {
        run_ = &run;
        run.state = this;
        step_ = step::inputs;
        if (run.reply)
            timer_.begin_run(backend_.how().timed_runs);
        if (auto ec = arguments_.begin(run.as<detail::plan_run_op>(), exec_))
            return ec;
        if (auto ec = values_.set(backend_, exec_, records_, ops_, arguments_.staged_inputs()))
            return ec;
        arguments_.clear_word();
        if (!recorded())
            sequence_.start(ops_);
    }
    return recorded() ? readiness::ready : advance_run(s);
}

result<readiness> plan_instance::advance_run(stream_state& s)
{
    if (step_ == step::inputs) {
        timer_.start(backend_, s.native);
        if (auto ec = arguments_.enqueue_inputs(s.native))
            return ec;
        step_ = step::ops;
    }
    if (step_ == step::ops) {
        BOOST_OUTCOME_TRY(const auto all, sequence_.advance(s));
        if (all == progress::pending)
            return readiness::pending;
        step_ = step::outputs;
    }
    if (auto ec = arguments_.enqueue_outputs(s.native))
        return ec;
    note_launched(s);
    return readiness::launched;
}

error_code plan_instance::launch_run(stream_state& s) noexcept
{
    const nvtx_range range(backend_.how().nvtx && !plan_.name.empty(), plan_.name);
    timer_.start(backend_, s.native);
    if (auto ec = backend_.check(backend_.api().cuGraphLaunch(exec_, s.native)))
        return ec;
    note_launched(s);
    return {};
}

void plan_instance::note_launched(stream_state& s) noexcept
{
    step_ = step::launched;
    timer_.stop(backend_, s.native);
    // A measured run ends with the event of its timer.
    s.last_word = timer_.commands() > 0 ? nullptr : arguments_.word();
}

void plan_instance::finish_run() noexcept
{
    bound_op& run = *std::exchange(run_, nullptr);
    run.state = nullptr;
    if (!recorded())
        run.status = sequence_.finish();
    const auto took = timer_.end_run(backend_);
    if (step_ != step::launched || run.status)
        return;
    if (run.reply)
        static_cast<detail::plan_ran*>(run.reply)->nanoseconds = took;
    arguments_.deliver(run.as<detail::plan_run_op>());
}

result<progress> plan_instance::dispose(CUstream after)
{
    if (!unused_) {
        BOOST_OUTCOME_TRY(const auto done, job_.run([this, after] { return wait_for(after); }));
        if (done == progress::pending)
            return done;
        // The engine may not have finished a run yet that the device has completed.
        if (run_)
            finish_run();
        unused_ = true;
    }
    BOOST_OUTCOME_TRY(const auto done, job_.run([this] {
        destroy();
        return error_code();
    }));
    if (done == progress::pending)
        return done;
    for (bound_op& o : ops_)
        (void)backend_.finish(o);
    disposed_ = true;
    return done;
}

void plan_instance::destroy() noexcept
{
    const driver_api& api = backend_.api();
    if (exec_)
        (void)backend_.check(api.cuGraphExecDestroy(std::exchange(exec_, nullptr)));
    if (graph_)
        (void)backend_.check(api.cuGraphDestroy(std::exchange(graph_, nullptr)));
    timer_.destroy(backend_);
    arguments_.release(copies_);
}

} // namespace coaccel::cuda
