#include "worker/parent/remote_context.hpp"

#include "context/buffers/buffer_table.hpp"
#include "context/buffers/operands.hpp"
#include "context/faults/op_problem.hpp"
#include "context/lanes/lane_selector.hpp"
#include "context/lanes/op_states.hpp"
#include "jit/registry.hpp"
#include "posix/fork_detector.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/plugin.hpp>

#include <algorithm>
#include <cstring>

namespace coaccel::worker {

using detail::clock;
using detail::request;

namespace {

// Limit on the ops in one record; `send` also checks the size of the record.
constexpr std::size_t most_ops = 200;

/// Such an op carries its own description (its operands), which is sent with it.
bool is_packed(const bound_op& op) noexcept
{
    return is_packed_id(op.info->id);
}

bool is_allocation(const bound_op& op) noexcept
{
    return op.info->role == op_role::allocate;
}

/// A kernel may have a host function and GPU code; a worker on the CPU could run only the host function.
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
    // The worker reports the error for a kernel that no longer exists.
    if (!image)
        return {};
    return detail::op_error(
        errc::unsupported_op, "jit.launch",
        {"the kernel ", kernel,
         " is code for a GPU, and the device is a worker process on the CPU; put a function for the "
         "CPU into a plug-in and use plugin::call, or use a GPU"});
}

} // namespace

remote_context::remote_context(std::unique_ptr<worker_link> link, std::shared_ptr<doorbell_waiter> watch,
                               detail::context_events& events, const context_options& options, remote_setup setup)
    : link_(std::move(link)), watch_(std::move(watch)), events_(events), setup_(std::move(setup)),
      polling_(options, setup_.spin),
      reply_watch_(reply_watch::limit_for(options.hang_timeout, link_->start_timeout())),
      outgoing_(link_->requests(), *this), held_([this](std::uint32_t slot) { return copies_.unsent(slot); }),
      kernels_(outgoing_, setup_.images), plans_(outgoing_),
      copies_(*setup_.memory, *this, end_, setup_.copy_threads, wake_up())
{
    link_->listen(wake_up());
    setup_.memory->listen(wake_up());
    encoder& out = outgoing_.begin();
    out.put(message_type::adopt);
    out.put(setup_.identity.device);
    out.put(setup_.identity.generation);
    outgoing_.post();
}

remote_context::~remote_context()
{
    setup_.memory->listen({});
    link_->listen({});
    watch_->stop();
    copies_.stop();
    // The process must have ended before its memory is reused, because it may still write to it. A process that cannot
    // be killed keeps the memory.
    link_->end(errc::worker_exited);
    const bool gone = link_->wait_for_end();
    link_.reset();
    if (!gone)
        return;
    copies_.give_back_memory();
    in_flight_.for_each([this](const in_flight_request& f) {
        if (f.block)
            setup_.memory->give_back(*f.block);
    });
}

notification remote_context::wake_up() noexcept
{
    return {[](void* events) noexcept { static_cast<detail::context_events*>(events)->wake(); }, &events_};
}

// --- requests -----------------------------------------------------------------------------------------------------

void remote_context::submit(request& r, clock::time_point now)
{
    r.launched = now;
    polling_.submitted(now);
    if (detail::forked())
        condemn(errc::context_lost);
    if (end_.dying())
        return events_.finished(r, errc::context_lost);
    if (auto ec = refusal(r))
        return events_.finished(r, ec);
    // Images are sent immediately even if the request has to wait: nothing has started yet that a failure would have to
    // undo.
    if (auto ec = kernels_.send(r))
        return events_.finished(r, ec);
    if (r.ops.front().info->lib == library::plan)
        if (auto ec = send_plan(r))
            return events_.finished(r, ec);
    if (split_runs::has_copies(r))
        splits_.start(r, [this](request& part) { start_in_order(part); });
    else
        start_in_order(r);
}

void remote_context::start_in_order(request& r)
{
    const bool in_order = copies_.empty() && held_.empty();
    if (!in_order && held_.must_wait(r, setup_.identity.device))
        held_.add(r);
    else
        start(r);
}

error_code remote_context::refusal(const request& r) const
{
    if (r.ops.size() > most_ops)
        return make_error_with_message(errc::invalid_argument, "a seq of " + std::to_string(r.ops.size()) +
                                                                   " ops; a worker takes at most " +
                                                                   std::to_string(most_ops));
    if (r.options.priority > priority::high)
        return detail::bad_priority(r.options);
    const bool allocates = std::ranges::any_of(r.ops, [](const bound_op& o) { return is_allocation(o); });
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
        const bound_op& o = r.ops[i];
        if (auto ec = refusal(o))
            return detail::placed(r, i, ec);
        // The operands of a request that allocates refer to buffers that do not exist yet.
        if (auto ec = allocates ? error_code() : nonsense(o))
            return detail::placed(r, i, ec);
    }
    return r.ops.size() > 1 ? split_runs::check(r) : error_code();
}

error_code remote_context::refusal(const bound_op& o) const
{
    if (o.info->lib == library::plan)
        return plan_refusal(o);
    if (o.info->id == detail::user_op_id)
        return detail::op_error(errc::not_isolatable, o.info->name,
                                {"the function is code of this process, and the device is in a worker process; put it "
                                 "into a plug-in and use plugin::call, or use isolation::in_process"});
    if (o.info->role == op_role::adopt)
        return detail::op_error(errc::not_isolatable, o.info->name,
                                {"the memory belongs to this process, and the device is in a worker process; use "
                                 "isolation::in_process"});
    if (o.info->role == op_role::wait || o.info->role == op_role::record)
        return detail::op_error(errc::not_isolatable, o.info->name,
                                {"event belongs to this process, and the device is in a worker process; use "
                                 "isolation::in_process"});
    if (auto ec = memory_refusal(o))
        return ec;
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

/// Checks for operands that a worker treats as a protocol error, although a caller's mistake can be the cause.
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

void remote_context::start(request& r)
{
    if (!splits_.empty())
        if (auto ec = splits_.failure(r))
            return complete(r, ec);
    if (r.ops.front().info->lib == library::plan && start_plan(r))
        return;
    if (r.ops.front().info->lib == library::memory && start_memory(r))
        return;
    if (auto v = view_transfer(r.ops.back()))
        return start_copy(r, *v);
    send(r, {.who = &r}, nullptr, 0);
}

injected_fault remote_context::next_injected_fault(std::size_t ops) noexcept
{
    injected_fault chosen = injected_fault::none;
    for (std::size_t i = 0; i < ops && setup_.faults; ++i) {
        const auto verdict = setup_.faults->next_op();
        if (verdict == fault_injector::verdict::poison)
            chosen = injected_fault::poison;
        else if (verdict == fault_injector::verdict::hang && chosen == injected_fault::none)
            chosen = injected_fault::hang;
    }
    return chosen;
}

/// Sends all ops of a request in one record; its transfer, if it has one, uses the memory at this offset.
void remote_context::send(request& r, in_flight_request f, const transfer_view* v, std::uint64_t offset)
{
    // A record that only allocates the buffer for a copy contains just the first op, the allocation.
    const std::size_t count = f.allocation_of ? 1 : r.ops.size();
    const std::uint64_t id = enlist(f);
    encoder& out = outgoing_.begin();
    put_submit_head(out, id, r.options, next_injected_fault(count), static_cast<std::uint8_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
        r.prepare(i);
        bound_op& o = r.ops[i];
        op_frame frame;
        if (is_allocation(o)) {
            const auto& a = o.as<detail::allocate_op>();
            frame.what = op_kind::allocate;
            frame.count = a.count;
            frame.type = a.type;
            frame.kind = a.kind;
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
        put_op(out, frame);
    }
    // Clear the placeholder refs, so that they are not mistaken for buffers if the request fails.
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
        if (is_allocation(r.ops[i]))
            static_cast<detail::allocation*>(r.ops[i].reply)->ref = {};
        r.prepare(i);
    }
    if (outgoing_.fits())
        return outgoing_.post();
    (void)in_flight_.take(id);
    complete(r, make_error_with_message(errc::invalid_argument, "a seq of " + std::to_string(r.ops.size()) +
                                                                    " ops has " + std::to_string(outgoing_.size()) +
                                                                    " bytes; a worker takes at most " +
                                                                    std::to_string(outgoing_.max_size())));
}

/// Like `send`, for a piece of a copy.
void remote_context::send_piece(const piece_message& m)
{
    encoder& out = outgoing_.begin();
    put_submit_head(out, enlist({.part = &m.what}), m.of.options, next_injected_fault(m.first ? 1 : 0), 1);
    put_op(out, m.frame);
    outgoing_.post();
}

void remote_context::release(const any_ref& buffer) noexcept
{
    if (end_.dying() || detail::forked() || buffer.device != setup_.identity.device ||
        buffer.generation != setup_.identity.generation)
        return;
    buffers_.released();
    if (held_.must_wait(buffer, setup_.identity.device))
        held_.add(buffer);
    else
        send_release(buffer);
}

void remote_context::send_release(const any_ref& buffer)
{
    encoder& out = outgoing_.begin();
    buffers_.remove(buffer);
    out.put(message_type::release);
    out.put_ref(buffer);
    outgoing_.post();
}

} // namespace coaccel::worker
