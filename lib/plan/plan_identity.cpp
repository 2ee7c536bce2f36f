#include "jit/registry.hpp"
#include "plan/content_hash.hpp"
#include "plan/plan_parts.hpp"

#include <dlfcn.h>
#include <map>

namespace coaccel::detail {
namespace {

/// The position of a function in its program or shared object, which is the same in every process that runs it.
std::uint64_t position_of(jit::host_function::erased function) noexcept
{
    const auto* address = reinterpret_cast<const char*>(function);
    ::Dl_info found{};
    if (::dladdr(address, &found) == 0)
        return 0;
    return static_cast<std::uint64_t>(address - static_cast<const char*>(found.dli_fbase));
}

content_id identify(const jit::image& i) noexcept
{
    content_hash h;
    h.add(std::string_view(i.name));
    h.add(std::string_view(i.symbol));
    h.add(std::string_view(i.code));
    const auto host = jit::find_host_function(i.host);
    h.add(bool(host));
    if (host)
        h.add(position_of(host.function));
    return h.finish();
}

/// Adds the ops of a plan to a hash, field by field, because the padding between fields has no defined value.
class op_hasher {
public:
    explicit op_hasher(content_hash& h) noexcept : hash_(h) {}

    void add(const listed_op& o)
    {
        hash_.add(std::string_view(o.info->name));
        if (const auto* launch = as_launch(o))
            add_launch(*launch, image_of(o));
        if (const auto* call = as_call(o))
            add_call(*call);
        hash_.add(o.info->fields.size());
        for (const op_field& f : o.info->fields) {
            hash_.add(f.name);
            hash_.add(f.what);
            hash_.add(f.type);
            if (f.what == op_field::kind::operand)
                add_operand(f.mode, ref_of(o, f));
            else
                add_value(f, field_data(o, f));
        }
    }

private:
    void add_launch(const jit::launch_head& head, const jit::image& i)
    {
        auto known = images_.find(head.kernel);
        if (known == images_.end())
            known = images_.emplace(head.kernel, identify(i)).first;
        hash_.add(known->second);
        for (const jit::dim3& d : {head.shape.grid, head.shape.block}) {
            hash_.add(d.x);
            hash_.add(d.y);
            hash_.add(d.z);
        }
        hash_.add(head.shape.shared_bytes);
    }

    void add_call(const plugin::call_head& head) noexcept
    {
        hash_.add(std::string_view(head.function));
        // Only if it is stated, so that other plans keep their identity.
        if (head.version != 0) {
            hash_.add(std::string_view("version"));
            hash_.add(head.version);
        }
    }

    void add_operand(access mode, const any_ref& r) noexcept
    {
        hash_.add(mode);
        hash_.add(r.slot);
        hash_.add(r.offset);
        hash_.add(r.size);
    }

    void add_value(const op_field& f, const void* value)
    {
        hash_.add(f.holds);
        if (f.holds == op_field::content::generator) {
            rand::generator g;
            std::memcpy(&g, value, sizeof(g));
            hash_.add(generators_.number(g));
            hash_.add(g.options().algorithm);
            hash_.add(g.options().seed);
            hash_.add(g.options().offset);
            hash_.add(g.options().ordering);
            hash_.add(g.options().dimensions);
            return;
        }
        hash_.add(f.size);
        hash_.add_bytes(value, f.size);
    }

    content_hash& hash_;
    generator_numbers generators_;
    std::map<std::uint64_t, content_id> images_;
};

} // namespace

std::size_t generator_numbers::number(const rand::generator& g)
{
    return known_.try_emplace(g.id(), known_.size() + 1).first->second;
}

content_id identify(const plan_data& plan)
{
    content_hash h;
    h.add(std::string_view("coaccel plan 1"));
    h.add(plan.slots.size());
    for (const plan_slot& s : plan.slots) {
        h.add(s.kind);
        h.add(s.type);
        h.add(s.count);
    }
    // Only of durable slots, so that other plans keep their identity.
    for (const plan_slot& s : plan.slots)
        if (s.durable) {
            h.add(std::string_view("durable"));
            h.add(s.index);
            h.add(*s.durable);
        }
    for (const plan_content& c : plan.constant_contents)
        h.add(c.id);
    for (const plan_content& c : plan.state_contents) {
        h.add(c.data != nullptr);
        h.add(c.id);
    }
    h.add(plan.ops.size());
    op_hasher ops(h);
    for (const listed_op& o : plan.ops)
        ops.add(o);
    // Last, so that a plan without them needs no mark.
    for (const plan_binding& b : plan.bindings) {
        h.add(b.op);
        h.add(b.field);
        h.add(b.slot);
    }
    return h.finish();
}

} // namespace coaccel::detail
