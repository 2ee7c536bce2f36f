#include "worker/child/server.hpp"

// The messages about memory that outlives this process.
namespace coaccel::worker {

bool server::import_memory(const import_frame& frame)
{
    inject(frame.head.injected_fault);
    // Before anything else, so that the descriptors stay in step with the records.
    auto descriptor = place_.descriptors.receive(frame.head.id);
    if (!descriptor && errc_of(descriptor.error()) == errc::worker_corrupted)
        return false;
    auto made = descriptor ? context_->import_buffer(std::move(descriptor).value(), frame.buffer)
                           : result<any_ref>(descriptor.error());
    // A lost context is reported with message_type::lost.
    if (!context_->accepting())
        return true;
    show_use();
    begin_answer(frame.head.id, made ? error_code() : made.error());
    if (made)
        out_.put_ref(made.value());
    send();
    return true;
}

bool server::export_memory(const export_frame& frame)
{
    inject(frame.head.injected_fault);
    auto descriptor = context_->export_buffer(frame.buffer, frame.access);
    // The descriptor is closed here: the mapping keeps the memory alive for this process.
    const error_code ec =
        descriptor ? place_.descriptors.send(frame.head.id, descriptor.value().get()) : descriptor.error();
    if (!context_->accepting())
        return true;
    show_use();
    begin_answer(frame.head.id, ec);
    send();
    return true;
}

} // namespace coaccel::worker
