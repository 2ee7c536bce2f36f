#include "plan/file/op_values.hpp"

#include "core/escape_text.hpp"

#include <array>

namespace coaccel::detail {
namespace {

std::string_view name_of(access a) noexcept
{
    switch (a) {
    case access::read: return "in";
    case access::write: return "out";
    case access::read_write: return "inout";
    }
    return "unknown";
}

/// The name of an enumerator; empty for enumerations without names.
std::string_view enumerator_of(const op_field& f, const void* value)
{
    const char* const name = f.enumerator ? f.enumerator(value) : nullptr;
    return name ? name : "";
}

template <class E>
void write_enumerator(tree_writer& out, E value)
{
    op_field f{};
    describe_value<E>(f);
    out.enumerator(f.type, &value, enumerator_of(f, &value));
}

bool same(const rand::generator_options& a, const rand::generator_options& b) noexcept
{
    return a.algorithm == b.algorithm && a.seed == b.seed && a.offset == b.offset && a.ordering == b.ordering &&
           a.dimensions == b.dimensions;
}

/// What the field is in this version of the library.
std::string describe(const op_field& f)
{
    if (f.what == op_field::kind::operand)
        return "an operand";
    switch (f.holds) {
    case op_field::content::number: return "a number of type " + std::string(to_string(f.type));
    case op_field::content::boolean: return "a bool";
    case op_field::content::enumeration: return "an enumerator of type " + std::string(to_string(f.type));
    case op_field::content::generator: return "a generator";
    case op_field::content::bytes: break;
    }
    return std::to_string(f.size) + " bytes";
}

} // namespace

// --- writing ------------------------------------------------------------------------------------------------------

void op_value_writer::value(const op_field& f, const std::byte* from)
{
    switch (f.holds) {
    case op_field::content::number: return out_.number(f.type, from);
    case op_field::content::boolean: return out_.boolean(*from != std::byte(0));
    case op_field::content::enumeration: return out_.enumerator(f.type, from, enumerator_of(f, from));
    case op_field::content::bytes: return out_.bytes({from, f.size});
    case op_field::content::generator: {
        rand::generator g;
        std::memcpy(&g, from, sizeof(g));
        return generator(g);
    }
    }
}

void op_value_writer::operand(const op_field& f, const any_ref& r)
{
    out_.begin_record();
    out_["mode"].text(name_of(f.mode));
    out_["type"].text(to_string(f.type));
    if (!has_none(f, r)) {
        out_["slot"].number(r.slot);
        out_["offset"].number(r.offset);
        out_["size"].number(r.size);
    }
    out_.end();
}

void op_value_writer::generator(const rand::generator& g)
{
    const auto& o = g.options();
    out_.begin_record();
    out_["number"].number(static_cast<std::uint32_t>(generators_.number(g)));
    write_enumerator(out_["algorithm"], o.algorithm);
    out_["seed"].number(o.seed);
    out_["offset"].number(o.offset);
    write_enumerator(out_["ordering"], o.ordering);
    out_["dimensions"].number(o.dimensions);
    out_.end();
}

// --- reading ------------------------------------------------------------------------------------------------------

bool op_value_reader::differs(const node& n, const op_field& f)
{
    return problem_.set(errc::unsupported_op,
                        {f.name, " is ", describe(n), " in the file, and ", describe(f), " in this library"});
}

bool op_value_reader::read(const node& n, const op_field& f, std::byte* to)
{
    if (f.what == op_field::kind::operand)
        return n.kind == node_kind::record ? operand(n, f, to) : differs(n, f);
    switch (f.holds) {
    case op_field::content::boolean:
        if (n.kind != node_kind::boolean)
            return differs(n, f);
        break;
    case op_field::content::number:
        if (n.kind != node_kind::number || n.type != f.type)
            return differs(n, f);
        break;
    case op_field::content::enumeration:
        return n.kind == node_kind::enumerator && n.type == f.type ? enumerator(n, f, to) : differs(n, f);
    case op_field::content::generator: return n.kind == node_kind::record ? generator(n, f, to) : differs(n, f);
    case op_field::content::bytes:
        if (n.kind != node_kind::bytes)
            return differs(n, f);
        break;
    }
    if (n.data.size() != f.size)
        return differs(n, f);
    std::memcpy(to, n.data.data(), n.data.size());
    return true;
}

bool op_value_reader::operand(const node& n, const op_field& f, std::byte* to)
{
    any_ref r{.device = plan_device, .generation = builder_, .type = f.type};
    std::string mode, type;
    record_fields from(n, problem_);
    const bool none = f.optional && !from.has("slot");
    if (!from.get("mode", mode) || !from.get("type", type))
        return false;
    if (!none && (!from.get("slot", r.slot) || !from.get("offset", r.offset) || !from.get("size", r.size)))
        return false;
    if (!from.done())
        return false;
    if (mode != name_of(f.mode) || type != to_string(f.type))
        return problem_.set(errc::unsupported_op,
                            {f.name, " is ", escape_text(mode.substr(0, 100)), "<", escape_text(type.substr(0, 100)),
                             "> in the file, and ", name_of(f.mode), "<", to_string(f.type), "> in this library"});
    if (none)
        r = {.slot = any_ref::no_slot, .type = f.type};
    else if (r.slot >= slots_)
        return problem_.invalid({f.name, " names slot ", r.slot, ", the plan has ", slots_});
    std::memcpy(to, &r, sizeof(r));
    return true;
}

bool op_value_reader::enumerator(const node& n, const op_field& f, std::byte* to)
{
    // The function reads the enumeration, which may need the alignment of its type.
    alignas(16) std::array<std::byte, 16> number{};
    std::memcpy(number.data(), n.data.data(), n.data.size());
    if (f.enumerator && enumerator_of(f, number.data()) != n.enumerator)
        return problem_.set(
            errc::unsupported_op,
            {f.name, " is ", describe(n), " in the file, whose number means ",
             enumerator_of(f, number.data()).empty() ? std::string_view("nothing") : enumerator_of(f, number.data()),
             " in this library"});
    std::memcpy(to, n.data.data(), n.data.size());
    return true;
}

template <class E>
bool op_value_reader::enumerator(record_fields& from, std::string_view name, E& value)
{
    op_field f{};
    describe_value<E>(f);
    f.name = name;
    const node* const found = from.get(name, node_kind::enumerator);
    return found &&
           (found->type == f.type ? enumerator(*found, f, reinterpret_cast<std::byte*>(&value)) : differs(*found, f));
}

bool op_value_reader::generator(const node& n, const op_field&, std::byte* to)
{
    std::uint32_t number = 0;
    rand::generator_options o;
    record_fields from(n, problem_);
    if (!from.get("number", number) || !enumerator(from, "algorithm", o.algorithm) || !from.get("seed", o.seed) ||
        !from.get("offset", o.offset) || !enumerator(from, "ordering", o.ordering) ||
        !from.get("dimensions", o.dimensions) || !from.done())
        return false;
    auto found = generators_.find(number);
    if (found == generators_.end())
        found = generators_.emplace(number, rand::make_generator(o)).first;
    if (!same(found->second.options(), o))
        return problem_.invalid({"generator ", number, " has other options than before"});
    std::memcpy(to, &found->second, sizeof(rand::generator));
    return true;
}

} // namespace coaccel::detail
