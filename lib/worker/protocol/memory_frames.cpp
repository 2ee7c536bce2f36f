#include "worker/protocol/memory_frames.hpp"

#include <coaccel/core/detail/shape.hpp>

namespace coaccel::worker {

void put_import(encoder& out, const import_frame& frame)
{
    put_request_head(out, message_type::import_memory, frame.head);
    out.put(frame.buffer.count);
    out.put(frame.buffer.type);
    out.put(frame.buffer.access);
}

bool get_import(decoder& in, import_frame& frame)
{
    detail::imported_buffer& b = frame.buffer;
    if (!get_request_head(in, frame.head) || !in.get(b.count) || !in.get(b.type, dtype::f16, dtype::c128) ||
        !in.get(b.access, memory_access::read_only, memory_access::read_write) || !in.at_end() || b.count == 0)
        return false;
    const auto bytes = detail::times(b.count, size_of(b.type));
    return bytes && *bytes >> 63 == 0;
}

void put_export(encoder& out, const export_frame& frame)
{
    put_request_head(out, message_type::export_memory, frame.head);
    out.put_ref(frame.buffer);
    out.put(frame.access);
}

bool get_export(decoder& in, export_frame& frame)
{
    return get_request_head(in, frame.head) && in.get_ref(frame.buffer) &&
           in.get(frame.access, memory_access::read_only, memory_access::read_write) && in.at_end() &&
           frame.buffer.device != made_here;
}

} // namespace coaccel::worker
