#ifndef COACCEL_WORKER_PROTOCOL_MEMORY_FRAMES_HPP
#define COACCEL_WORKER_PROTOCOL_MEMORY_FRAMES_HPP

#include "context/context.hpp"
#include "worker/protocol/wire.hpp"

// The messages about memory that outlives the worker. Its descriptors are sent through the descriptor_socket, before
// the record that refers to them.
namespace coaccel::worker {

/// To the worker: maps the memory whose descriptor has the number of the request. The reply is the ref of its buffer.
struct import_frame {
    request_head head;
    detail::imported_buffer buffer;
};

void put_import(encoder& out, const import_frame& frame);
/// Precondition: the message type has been read. Returns false if the record is invalid.
[[nodiscard]] bool get_import(decoder& in, import_frame& frame);

/// To the worker: seals the memory of this buffer, and sends its descriptor with the number of the request.
struct export_frame {
    request_head head;
    any_ref buffer;
    memory_access access = memory_access::read_only;
};

void put_export(encoder& out, const export_frame& frame);
/// Likewise.
[[nodiscard]] bool get_export(decoder& in, export_frame& frame);

} // namespace coaccel::worker

#endif
