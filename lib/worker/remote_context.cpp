#include "worker/remote_context.hpp"

#include "context/buffer_table.hpp"
#include "context/lane_choice.hpp"
#include "context/op_problem.hpp"
#include "context/operands.hpp"
#include "jit/registry.hpp"
#include "worker/fork_guard.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/jit_launch.hpp>
#include <coaccel/ops/plugin_call.hpp>

#include <algorithm>
#include <cstring>

namespace coaccel::worker {

using detail::clock;
using detail::request;

namespace {

// What a record has room for, with its head.
constexpr std::size_t most_ops = 200;

/// Its description is its own, and goes along.
bool is_packed(const bound_op& op) noexcept
{
    return op.info->id == jit::launch_op_id || op.info->id == plugin::call_op_id;
}

bool is_allocation(const bound_op& op) noexcept
{
    return op.info->id == info_of<detail::allocate_op>().id;
}

/// A kernel may have a host function and code for the GPU; a worker on the CPU could run the first only.
bool needs_host_function(const jit::launch_head& head, std::string_view backend) noexcept
{
    if (head.host == 0)
        return false;
    const auto image = jit::find_image(head.kernel);
    return !image || image->code.empty() || backend == "host";
}

error_code launch_refusal(const jit::launch_head& head, std::string_view backend)
{
    const bool for_host = needs_host_function(head, backend);
    if (!for_host && backend != "host")
        return {};
    const auto image = jit::find_image(head.kernel);
    const std::string_view kernel = image ? std::string_view(image->name) : "";
    if (for_host)
        return detail::op_error(errc::not_isolatable, "jit.launch",
                                {"the host function of the kernel ", kernel,
                                 " is code of this process, and the device is in a worker process; put it into a "
                                 "plug-in and use plugin::call, or use isolation::in_process"});
    // The worker says what there is to say of one that is gone.
    if (!image)
        return {};
    return detail::op_error(
        errc::unsupported_op, "jit.launch",
        {"the kernel ", kernel,
         " is code for a GPU, and the device is a worker process on the CPU; put a function for the "
         "CPU into a plug-in and use plugin::call, or use a GPU"});
}

/// Around the time a reply is due nobody looks for longer than the worker's options allow.
detail::completion_rule rule_for(context_options options, const remote_setup& setup) noexcept
{
    options.spin_budget = std::min(options.spin_budget, setup.spin);
    return detail::completion_rule(options);
}

} // namespace

remote_context::remote_context(std::unique_ptr<worker_link> link, std::shared_ptr<bell_watch> watch,
                               detail::context_events& events, const context_options& options, remote_setup setup)
    : link_(std::move(link)), watch_(std::move(watch)), events_(events), setup_(std::move(setup)),
      rule_(rule_for(options, setup_)),
      reply_watch_(reply_watch::limit_for(options.hang_timeout, link_->start_timeout())), images_(setup_.images),
      crew_(setup_.copy_threads)
{
    link_->listen(wake_up());
    setup_.memory->listen(wake_up());
    out_.put(verb::adopt);
    out_.put(setup_.identity.device);
    out_.put(setup_.identity.generation);
    post(out_.record());
}

remote_context::~remote_context()
{
    setup_.memory->listen({});
    link_->listen({});
    watch_->stop();
    crew_.stop();
    // The process must be gone before others get the memory it may write to. One that cannot be killed keeps it.
    link_->end(errc::worker_exited);
    const bool gone = link_->wait_for_end();
    link_.reset();
    if (!gone)
        return;
    for (const piece& p : pieces_)
        setup_.memory->give_back(p.block);
    for (const flight& f : flights_)
        if (f.block)
            setup_.memory->give_back(*f.block);
}

notification remote_context::wake_up() noexcept
{
    return {[](void* events) noexcept { static_cast<detail::context_events*>(events)->wake(); }, &events_};
}

// --- requests -----------------------------------------------------------------------------------------------------

void remote_context::submit(request& r, clock::time_point now)
{
    r.launched = last_moved_ = now;
    if (forked())
        condemn(errc::context_lost);
    if (dying_)
        return events_.finished(r, errc::context_lost);
    if (auto ec = refusal(r))
        return events_.finished(r, ec);
    // At once, also for one that has to wait: then nothing has begun yet that would have to be taken back.
    if (auto ec = send_images(r))
        return events_.finished(r, ec);
    if (must_wait(r))
        held_.push_back({&r, {}});
    else
        start(r);
}

error_code remote_context::refusal(const request& r) const
{
    if (r.ops.size() > most_ops)
        return note_error(errc::invalid_argument, "a seq of " + std::to_string(r.ops.size()) +
                                                      " ops; a worker takes at most " + std::to_string(most_ops));
    if (r.options.priority > priority::high)
        return detail::bad_priority(r.options);
    const bool allocates = std::ranges::any_of(r.ops, [](const bound_op& o) { return is_allocation(o); });
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
        const bound_op& o = r.ops[i];
        if (auto ec = refusal(o))
            return detail::placed(r, i, ec);
        // One that allocates names what it makes, which is not there yet.
        if (auto ec = allocates ? error_code() : nonsense(o))
            return detail::placed(r, i, ec);
    }
    return {};
}

error_code remote_context::refusal(const bound_op& o) const
{
    if (o.info->id == detail::user_op_id)
        return detail::op_error(errc::not_isolatable, o.info->name,
                                {"the function is code of this process, and the device is in a worker process; put it "
                                 "into a plug-in and use plugin::call, or use isolation::in_process"});
    if (is_allocation(o)) {
        if (o.as<detail::allocate_op>().kind != memory_kind::managed)
            return {};
        return detail::op_error(errc::not_isolatable, o.info->name,
                                {"managed memory is memory of this process too, which a worker process does not share; "
                                 "use isolation::in_process"});
    }
    if (o.info->id == jit::launch_op_id)
        if (auto ec = launch_refusal(o.as<jit::launch_head>(), backend_name()))
            return ec;
    if (o.info->size > largest_op)
        return detail::op_error(errc::unsupported_op, o.info->name,
                                {"it has ", o.info->size, " bytes, a worker takes at most ", largest_op});
    return {};
}

/// What a worker would not take from its parent, though a caller's mistake can be the cause.
error_code remote_context::nonsense(const bound_op& o) const noexcept
{
    for (std::size_t i = 0; i < o.info->operands.size(); ++i) {
        const any_ref& ref = detail::operand_of(o, i);
        if (is_dtype(ref.type) && ref.device != made_here)
            continue;
        const auto ec = detail::check_origin(ref, setup_.identity);
        return detail::operand_error(o, i, ec ? errc_of(ec) : errc::wrong_dtype, setup_.identity, {});
    }
    return {};
}

// A copy is told to the worker bit by bit; whatever uses the same buffer comes after all of it.
bool remote_context::blocked(std::uint32_t slot) const noexcept
{
    for (const copy& c : copies_)
        if (!c.state.all_sent() && !c.allocating && c.what.ref.slot == slot)
            return true;
    return std::ranges::any_of(held_,
                               [&](const held& h) { return h.who ? uses(*h.who, slot) : h.released.slot == slot; });
}

bool remote_context::must_wait(const request& r) const noexcept
{
    if (copies_.empty() && held_.empty())
        return false;
    for (const bound_op& o : r.ops)
        for (std::size_t i = 0; i < o.info->operands.size(); ++i) {
            const any_ref& ref = detail::operand_of(o, i);
            if (ref.device == setup_.identity.device && blocked(ref.slot))
                return true;
        }
    return false;
}

bool remote_context::uses(const request& r, std::uint32_t slot) const noexcept
{
    for (const bound_op& o : r.ops)
        for (std::size_t i = 0; i < o.info->operands.size(); ++i) {
            const any_ref& ref = detail::operand_of(o, i);
            if (ref.device == setup_.identity.device && ref.slot == slot)
                return true;
        }
    return false;
}

void remote_context::start(request& r)
{
    if (auto v = view_transfer(r.ops.back()))
        return start_copy(r, *v);
    send(r, {.who = &r}, nullptr, 0);
}

play remote_context::next_play(std::size_t ops) noexcept
{
    play chosen = play::none;
    for (std::size_t i = 0; i < ops && setup_.faults; ++i) {
        const auto verdict = setup_.faults->next_op();
        if (verdict == fault_injector::verdict::poison)
            chosen = play::poison;
        else if (verdict == fault_injector::verdict::hang && chosen == play::none)
            chosen = play::hang;
    }
    return chosen;
}

/// All ops of a request in one record; its transfer, if it has one, with memory at this offset.
void remote_context::send(request& r, flight f, const transfer_view* v, std::uint64_t offset)
{
    // One that makes a buffer for a copy only sends as many ops as come before it.
    const std::size_t count = f.allocation_of ? 1 : r.ops.size();
    const std::uint64_t id = enlist(f);
    out_.clear();
    put_submit_head(out_, id, r.options, next_play(count), static_cast<std::uint8_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
        r.prepare(i);
        bound_op& o = r.ops[i];
        op_frame frame;
        if (is_allocation(o)) {
            const auto& a = o.as<detail::allocate_op>();
            frame.what = op_kind::allocate;
            frame.count = a.count;
            frame.type = a.type;
            static_cast<detail::allocation*>(o.reply)->ref = {
                .device = made_here, .slot = static_cast<std::uint32_t>(i), .size = a.count, .type = a.type};
        } else if (v && i + 1 == count) {
            frame.what = v->way == transfer_view::direction::to_device ? op_kind::write : op_kind::read;
            frame.ref = view_transfer(o)->ref;
            frame.offset = offset;
            frame.count = v->count;
            frame.type = v->type;
        } else {
            frame.what = is_packed(o) ? op_kind::launch : op_kind::plain;
            frame.id = o.info->id;
            frame.reply_size = o.info->reply_size;
            frame.data = {static_cast<const std::byte*>(o.op), o.info->size};
            frame.operands = frame.what == op_kind::launch ? o.info->operands : std::vector<op_field>();
        }
        put_op(out_, frame);
    }
    // Nobody shall take the mark for a buffer when the request does not come back.
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
        if (is_allocation(r.ops[i]))
            static_cast<detail::allocation*>(r.ops[i].reply)->ref = {};
        r.prepare(i);
    }
    if (out_.record().size() <= link_->requests().max_record())
        return post(out_.record());
    delist(id);
    events_.finished(r, note_error(errc::invalid_argument, "a seq of " + std::to_string(r.ops.size()) + " ops has " +
                                                               std::to_string(out_.record().size()) +
                                                               " bytes; a worker takes at most " +
                                                               std::to_string(link_->requests().max_record())));
}

void remote_context::release(const any_ref& buffer) noexcept
{
    if (dying_ || forked() || buffer.device != setup_.identity.device ||
        buffer.generation != setup_.identity.generation)
        return;
    live_buffers_ -= live_buffers_ > 0;
    if (blocked(buffer.slot))
        held_.push_back({nullptr, buffer});
    else
        send_release(buffer);
}

void remote_context::send_release(const any_ref& buffer)
{
    out_.clear();
    buffers_.remove(buffer);
    out_.put(verb::release);
    out_.put_ref(buffer);
    post(out_.record());
}

void remote_context::let_go_of_held()
{
    std::deque<held> all;
    all.swap(held_);
    // Each may have to wait for those before it.
    for (const held& h : all) {
        if (h.who ? must_wait(*h.who) : blocked(h.released.slot))
            held_.push_back(h);
        else if (h.who)
            start(*h.who);
        else
            send_release(h.released);
    }
}

} // namespace coaccel::worker
