#include "worker/child/server.hpp"

// The messages about plans.
namespace coaccel::worker {

bool server::add_plan(const plan_frame& frame)
{
    return plans_.add(frame, {.describe = [this](std::uint64_t id) { return context_->describe(id); },
                              .kernels = images_,
                              .backend = context_->backend_name()});
}

bool server::load(const load_frame& frame)
{
    inject(frame.head.injected_fault);
    const received_plans::entry* const found = plans_.find(frame.plan);
    if (!found)
        return false;
    if (!found->plan) {
        answer(frame.head.id, found->refusal(), nullptr);
        return true;
    }
    load_frame typed = frame;
    for (std::size_t i = 0; i < typed.refs.size() && i < detail::plan_load_operands(*found->plan).count; ++i)
        if (const auto* s = graph_slot_of(*found->plan, i))
            typed.refs[i].type = s->type;
    if (!instances_.add(typed.instance, {.plan = found->plan, .chain = typed.chain, .refs = typed.refs}))
        return false;
    remote_request& r = spare();
    r.load(typed, found->plan);
    return start(r, {});
}

bool server::run(const run_frame& frame)
{
    inject(frame.head.injected_fault);
    remote_request& r = spare();
    return start(r, r.load(frame, instances_, place_.staging));
}

bool server::release(const any_ref& buffer)
{
    if (instances_.delay_release(buffer))
        return true;
    context_->release(buffer);
    show_use();
    return true;
}

void server::note_plan_step(const remote_request& r, const error_code& ec)
{
    using step = remote_request::plan_step;
    const bool over = r.step() == step::load ? bool(ec) : r.step() == step::unload && !ec;
    if (r.step() == step::unload && ec)
        instances_.unload_failed(r.instance());
    // A lost context frees its buffers itself, and may still use them.
    if (!over || !context_ || is_context_lost(ec))
        return;
    for (const any_ref& buffer : instances_.remove(r.instance()))
        context_->release(buffer);
}

} // namespace coaccel::worker
