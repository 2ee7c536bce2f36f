#include "worker/protocol/memory_frames.hpp"

namespace coaccel::worker {

void put_import(encoder& out, const import_frame& frame)
{
    put_request_head(out, message_type::import_memory, frame.head);
    out.put(frame.bytes);
}

bool get_import(decoder& in, import_frame& frame)
{
    return get_request_head(in, frame.head) && in.get(frame.bytes) && in.at_end() && frame.bytes != 0 &&
           frame.bytes >> 63 == 0;
}

void put_export(encoder& out, const export_frame& frame)
{
    put_request_head(out, message_type::export_memory, frame.head);
    out.put_ref(frame.buffer);
}

bool get_export(decoder& in, export_frame& frame)
{
    return get_request_head(in, frame.head) && in.get_ref(frame.buffer) && in.at_end() &&
           frame.buffer.device != made_here;
}

} // namespace coaccel::worker
