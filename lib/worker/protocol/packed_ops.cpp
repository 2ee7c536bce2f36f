#include "worker/protocol/packed_ops.hpp"

#include "jit/image.hpp"
#include "jit/registry.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/plugin.hpp>

#include <cstddef>

namespace coaccel::worker {
namespace {

/// Not every byte value is a valid bool.
bool is_value(const std::uint8_t* bytes, const jit::parameter_type& type) noexcept
{
    return type.code != jit::type_code::boolean || (type.size == 1 && *bytes <= 1);
}

/// Whether the bytes are a head followed by arguments, each at its stated position, with the refs where the frame says.
template <class Head>
bool is_packed(const packed_op_frame& frame) noexcept
{
    using jit::launch_argument;
    const std::size_t size = frame.op.size();
    if (size < sizeof(Head))
        return false;
    const auto* const op = frame.op.data();
    const auto& head = *reinterpret_cast<const Head*>(op);
    if (head.count > jit::max_arguments || sizeof(Head) + head.count * sizeof(launch_argument) > size)
        return false;
    for (std::size_t n = 0; n < head.count; ++n) {
        const auto* a = head.arguments() + n;
        // Read as a byte, because not every byte value is a valid bool.
        const auto flag =
            *(reinterpret_cast<const std::uint8_t*>(&a->type) + offsetof(jit::parameter_type, enumeration));
        const bool operand = a->operand != launch_argument::no_operand;
        const bool sound =
            flag <= 1 && a->type.form <= jit::type_form::pointer_to_const && a->type.code <= jit::type_code::nothing &&
            (operand ? a->operand < frame.operands.size() && a->offset == frame.operands[a->operand].offset &&
                           std::uint8_t(a->type.code) == std::uint8_t(frame.operands[a->operand].type)
                     : std::size_t(a->offset) + a->type.size <= size &&
                           is_value(reinterpret_cast<const std::uint8_t*>(op) + a->offset, a->type));
        if (!sound)
            return false;
    }
    // Refs to the results of earlier ops are overwritten later, so refs must not overlap other data.
    std::size_t free_from = sizeof(Head) + head.count * sizeof(launch_argument);
    for (const op_field& f : frame.operands) {
        if (f.offset < free_from)
            return false;
        free_from = f.offset + sizeof(any_ref);
    }
    return true;
}

/// Names are not sent; these are the names that the sender uses.
template <class Head>
void name_operands(const packed_op_frame& frame, std::vector<op_field>& operands)
{
    const auto& head = *reinterpret_cast<const Head*>(frame.op.data());
    for (std::uint32_t i = 0; i < head.count; ++i)
        if (const auto operand = head.arguments()[i].operand; operand != jit::launch_argument::no_operand)
            operands[operand].name = detail::argument_name(i);
}

} // namespace

bool is_packed_id(std::uint64_t op_id) noexcept
{
    return op_id == jit::launch_op_id || op_id == plugin::call_op_id;
}

void put_operands(encoder& out, std::span<const op_field> operands)
{
    out.put(static_cast<std::uint8_t>(operands.size()));
    for (const op_field& f : operands) {
        out.put(f.offset);
        out.put(f.mode);
        out.put(f.type);
    }
}

bool get_operands(decoder& in, std::vector<op_field>& operands, std::size_t op_size)
{
    std::uint8_t count = 0;
    operands.clear();
    if (!in.get(count) || count > jit::max_arguments)
        return false;
    for (std::uint8_t i = 0; i < count; ++i) {
        op_field f{"operand", 0, sizeof(any_ref), op_field::kind::operand};
        if (!in.get(f.offset) || !in.get(f.mode, access::read, access::read_write) ||
            !in.get(f.type, dtype::f16, dtype::c128))
            return false;
        if (f.offset % alignof(any_ref) != 0 || f.offset + sizeof(any_ref) > op_size)
            return false;
        operands.push_back(f);
    }
    return true;
}

error_code describe_packed(const packed_op_frame& frame, const kernel_source& kernels, op_info& own,
                           std::shared_ptr<const void>& kept)
{
    own.id = frame.id;
    own.size = static_cast<std::uint32_t>(frame.op.size());
    own.operands.assign(frame.operands.begin(), frame.operands.end());
    if (frame.id == plugin::call_op_id) {
        if (!is_packed<plugin::call_head>(frame))
            return errc::worker_corrupted;
        name_operands<plugin::call_head>(frame, own.operands);
        own.name = "plugin.call";
        own.lib = library::user;
        own.work = [](const void* op) noexcept { return static_cast<const plugin::call_head*>(op)->work(); };
        own.check = [](const void* op) { return plugin::check_call(*static_cast<const plugin::call_head*>(op)); };
        return {};
    }
    if (frame.id != jit::launch_op_id || !is_packed<jit::launch_head>(frame))
        return errc::worker_corrupted;
    name_operands<jit::launch_head>(frame, own.operands);
    auto& head = *reinterpret_cast<jit::launch_head*>(frame.op.data());
    const auto image = kernels.find(head.kernel);
    if (!image)
        return jit::no_kernel("jit.launch");
    head.kernel = image->id;
    head.host = 0;
    kept = image;
    own.name = "jit.launch";
    own.lib = library::jit;
    own.obstacle = capture_obstacle::none;
    own.work = [](const void* op) noexcept { return static_cast<const jit::launch_head*>(op)->work(); };
    own.check = [](const void* op) { return jit::check_launch(*static_cast<const jit::launch_head*>(op)); };
    return {};
}

} // namespace coaccel::worker
