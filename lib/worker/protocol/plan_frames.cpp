#include "worker/protocol/plan_frames.hpp"

namespace coaccel::worker {
namespace {

void put_arguments(encoder& out, const std::vector<staged_argument>& arguments)
{
    out.put(static_cast<std::uint16_t>(arguments.size()));
    for (const staged_argument& a : arguments) {
        out.put(a.where.offset);
        out.put(a.where.bytes);
        out.put(a.offset);
    }
}

bool get_arguments(decoder& in, std::vector<staged_argument>& arguments)
{
    std::uint16_t count = 0;
    arguments.clear();
    if (!in.get(count))
        return false;
    for (std::uint16_t i = 0; i < count; ++i) {
        staged_argument a;
        if (!in.get(a.where.offset) || !in.get(a.where.bytes) || !in.get(a.offset) || a.where.bytes == 0 ||
            a.where.bytes > detail::largest_staged_argument)
            return false;
        arguments.push_back(a);
    }
    return true;
}

} // namespace

void put_plan(encoder& out, const plan_frame& frame)
{
    out.put(message_type::plan);
    out.put(frame.number);
    out.put(frame.total);
    out.put(frame.offset);
    out.put(static_cast<std::uint32_t>(frame.part.size()));
    out.put_bytes(frame.part);
}

bool get_plan(decoder& in, plan_frame& frame)
{
    std::uint32_t size = 0;
    if (!in.get(frame.number) || !in.get(frame.total) || !in.get(frame.offset) || !in.get(size) ||
        !in.get_bytes(size, frame.part))
        return false;
    return in.at_end() && frame.total > 0 && frame.total <= plan_limits{}.bytes_each && frame.offset <= frame.total &&
           size <= frame.total - frame.offset;
}

void put_load(encoder& out, const load_frame& frame)
{
    const any_ref first = frame.refs.empty() ? any_ref{} : frame.refs.front();
    put_request_head(out, message_type::load, frame.head);
    out.put(frame.plan);
    out.put(frame.instance);
    out.put(frame.chain);
    out.put(first.device);
    out.put(first.generation);
    out.put(static_cast<std::uint32_t>(frame.refs.size()));
    for (const any_ref& r : frame.refs) {
        out.put(r.slot);
        out.put(r.version);
        out.put(r.offset);
        out.put(r.size);
    }
}

bool get_load(decoder& in, load_frame& frame)
{
    any_ref r;
    std::uint32_t count = 0;
    frame.refs.clear();
    if (!get_request_head(in, frame.head) || !in.get(frame.plan) || !in.get(frame.instance) || !in.get(frame.chain) ||
        !in.get(r.device) || !in.get(r.generation) || !in.get(count) || count == 0 || r.device == made_here)
        return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (!in.get(r.slot) || !in.get(r.version) || !in.get(r.offset) || !in.get(r.size))
            return false;
        frame.refs.push_back(r);
    }
    return in.at_end();
}

void put_run(encoder& out, const run_frame& frame)
{
    put_request_head(out, message_type::run, frame.head);
    out.put_ref(frame.memory);
    out.put(frame.instance);
    out.put(frame.chain);
    put_arguments(out, frame.inputs);
    put_arguments(out, frame.outputs);
}

bool get_run(decoder& in, run_frame& frame)
{
    return get_request_head(in, frame.head) && in.get_ref(frame.memory) && frame.memory.device != made_here &&
           in.get(frame.instance) && in.get(frame.chain) && get_arguments(in, frame.inputs) &&
           get_arguments(in, frame.outputs) && in.at_end();
}

} // namespace coaccel::worker
