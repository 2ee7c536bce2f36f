#include "context/exported_memory.hpp"
#include "worker/parent/received_memory.hpp"
#include "worker/parent/remote_context.hpp"
#include "worker/protocol/memory_frames.hpp"

// Memory that outlives the worker: its descriptors are in this process.
namespace coaccel::worker {

using detail::export_op;
using detail::exported_memory;
using detail::import_op;
using detail::request;

namespace {

bool is_export(const bound_op& o) noexcept
{
    return o.info->id == info_of<export_op>().id;
}

bool is_import(const bound_op& o) noexcept
{
    return o.info->id == info_of<import_op>().id;
}

bool makes_exportable(const bound_op& o) noexcept
{
    return o.info->role == op_role::allocate && o.as<detail::allocate_op>().kind == memory_kind::exportable;
}

} // namespace

error_code remote_context::memory_refusal(const bound_op& o) const
{
    if ((is_export(o) || is_import(o) || makes_exportable(o)) && !link_->can_export())
        return detail::op_error(errc::unsupported_op, o.info->name,
                                {"the ", backend_name(), " backend cannot export memory"});
    return {};
}

/// Returns whether the request is an import or an export; it has then been sent.
bool remote_context::start_memory(request& r)
{
    const bound_op& o = r.ops.front();
    if (is_import(o))
        send_import(r);
    else if (is_export(o))
        send_export(r);
    else
        return false;
    return true;
}

void remote_context::send_import(request& r)
{
    const auto& op = r.ops.front().as<import_op>();
    const exported_memory& memory = **op.from;
    shares_writable_ |= memory.access == memory_access::read_write;
    const std::uint64_t id = enlist({.who = &r, .memory = true});
    if (auto ec = link_->descriptors().send(id, memory.descriptor.get())) {
        (void)in_flight_.take(id);
        return complete(r, ec);
    }
    put_import(outgoing_.begin(), {.head = head_for(id, r), .buffer = op.wanted()});
    outgoing_.post();
}

void remote_context::send_export(request& r)
{
    // A worker sends descriptors only when it is asked for one.
    if (exports_ == 0 && !link_->descriptors().empty()) {
        condemn(errc::worker_corrupted, "a descriptor that was not asked for");
        return complete(r, errc::context_lost);
    }
    ++exports_;
    const auto& op = r.ops.front().as<export_op>();
    shares_writable_ |= op.access == memory_access::read_write;
    const std::uint64_t id = enlist({.who = &r, .memory = true});
    put_export(outgoing_.begin(), {.head = head_for(id, r), .buffer = op.buffer.raw, .access = op.access});
    outgoing_.post();
}

/// Takes the result of an import or export. `ec`, the error that the worker has reported, is replaced if this process
/// fails. Returns false for an invalid result.
bool remote_context::take_memory(decoder& in, std::uint64_t id, request& r, error_code& ec)
{
    bound_op& o = r.ops.front();
    if (is_import(o)) {
        any_ref made;
        if (ec)
            return true;
        const auto wanted = o.as<import_op>().wanted();
        if (!in.get_ref(made) || !add_made(made, wanted.count, wanted.type))
            return false;
        *static_cast<detail::allocation*>(o.reply) = {made, nullptr};
        return true;
    }
    --exports_;
    auto& descriptors = link_->descriptors();
    const export_op& op = o.as<export_op>();
    if (!ec) {
        auto got = descriptors.receive(id);
        if (got) {
            if (const auto bad = check_received_memory(backend_name(), got.value(), op.buffer.size(), op.access)) {
                condemn(errc::worker_corrupted, bad.message());
                return false;
            }
            *op.to = std::make_shared<const exported_memory>(
                exported_memory{std::move(got).value(), op.buffer.size(), op.access});
        } else if (errc_of(got.error()) == errc::worker_corrupted) {
            condemn(errc::worker_corrupted, got.error().message());
            return false;
        } else {
            ec = got.error();
        }
    }
    if (exports_ > 0 || descriptors.empty())
        return true;
    condemn(errc::worker_corrupted, "a descriptor that was not asked for");
    return false;
}

} // namespace coaccel::worker
