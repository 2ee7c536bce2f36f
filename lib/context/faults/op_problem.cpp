#include "context/faults/op_problem.hpp"

#include "context/buffers/operands.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <array>
#include <exception>
#include <string>

namespace coaccel::detail {
namespace {

std::string ordinal(std::size_t i)
{
    constexpr std::array words{"first", "second",  "third",  "fourth", "fifth",
                               "sixth", "seventh", "eighth", "ninth",  "tenth"};
    if (i < words.size())
        return words[i];
    return "op " + std::to_string(i + 1);
}

/// Whether the caller combined several ops. A request that begins with an allocation is a single call, such as an
/// upload.
bool is_seq(const request& r) noexcept
{
    return r.ops.size() > 1 && !makes_buffer(r.ops.front().info->role);
}

} // namespace

std::string_view short_name(const op_info& info) noexcept
{
    const std::string_view all = info.name;
    return all.substr(0, all.find('<'));
}

error_code operand_error(const bound_op& o, std::size_t i, errc what, context_identity identity,
                         const std::optional<buffer_facts>& held) noexcept
{
    const op_field& f = o.info->operands[i];
    const any_ref& ref = operand_of(o, i);
    const auto op = short_name(*o.info);
    switch (what) {
    case errc::invalid_argument: return op_error(what, op, {f.name, " names no buffer"});
    case errc::wrong_device: return op_error(what, op, {f.name, " belongs to another device"});
    case errc::stale_ref:
        return op_error(
            what, op,
            {f.name, " is of generation ", ref.generation, ", the device is at generation ", identity.generation});
    case errc::released_ref: return op_error(what, op, {"the buffer of ", f.name, " has been released"});
    case errc::wrong_dtype:
        if (held && held->type != f.type)
            return op_error(what, op,
                            {f.name, " takes ", to_string(f.type), ", its buffer holds ", to_string(held->type)});
        return op_error(what, op, {f.name, " takes ", to_string(f.type), ", given a ref of ", to_string(ref.type)});
    case errc::out_of_bounds:
        if (ref.offset == any_ref::invalid_offset)
            return op_error(what, op, {f.name, " is a subspan of ", ref.size, " elements outside its ref"});
        if (!held)
            return op_error(what, op, {f.name, " names a buffer that was never made"});
        return op_error(
            what, op, {f.name, " names ", ref.size, " elements from ", ref.offset, " on, its buffer has ", held->size});
    default: return what;
    }
}

error_code overlap_error(const bound_op& o, std::size_t a, std::size_t b) noexcept
{
    const auto& fields = o.info->operands;
    return op_error(errc::overlap, short_name(*o.info), {fields[a].name, " and ", fields[b].name, " overlap"});
}

error_code not_implemented(const op_info& info, std::string_view backend) noexcept
{
    return op_error(errc::unsupported_op, info.name, {"the ", backend, " backend does not implement it"});
}

error_code allocation_error(const bound_op& o, const error_code& ec) noexcept
{
    const auto& wanted = o.as<allocate_op>();
    if (errc_of(ec) != errc::out_of_memory)
        return ec;
    return op_error(errc::out_of_memory, short_name(*o.info),
                    {"no device memory for ", wanted.bytes().value_or(0), " bytes, ", wanted.count, " elements of ",
                     to_string(wanted.type)});
}

error_code placed(const request& r, std::size_t i, const error_code& ec) noexcept
try {
    const errc what = errc_of(ec);
    if (!is_seq(r) || what == errc{})
        return ec;
    std::string text = ec.message();
    const op_info& info = *r.ops[i].info;
    // A message that concerns the element type has the full name.
    const std::string_view op = text.starts_with(info.name) ? info.name : short_name(info);
    const std::string place = ", " + ordinal(i) + " of seq";
    if (text.starts_with(op))
        text.insert(op.size(), place);
    else
        text = std::string(op) + place + ": " + text;
    return make_error_with_message(what, std::move(text));
} catch (const std::exception&) {
    return ec;
}

} // namespace coaccel::detail
