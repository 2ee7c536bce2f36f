#include "worker/child/remote_request.hpp"

#include "context/buffers/operands.hpp"
#include "jit/image.hpp"
#include "jit/registry.hpp"
#include "worker/transport/chunked_copy.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>
#include <coaccel/ops/plugin.hpp>

#include <cstring>

namespace coaccel::worker {
namespace {

/// Calls `f` with a default value of the C++ type.
template <class F, class... Ts>
error_code with_type(dtype t, F f, type_list<Ts...>)
{
    error_code ec = errc::worker_corrupted;
    (void)((dtype_v<Ts> == t && (ec = f(Ts{}), true)) || ...);
    return ec;
}

template <class T, class Unit>
T& place(std::vector<Unit>& where)
{
    where.resize(detail::op_units(sizeof(T)));
    return *new (where.data()) T{};
}

any_ref& ref_at(void* op, const op_field& f) noexcept
{
    return *reinterpret_cast<any_ref*>(static_cast<std::byte*>(op) + f.offset);
}

/// Not every byte value is a valid bool.
bool is_value(const std::uint8_t* bytes, const jit::parameter_type& type) noexcept
{
    return type.code != jit::type_code::boolean || (type.size == 1 && *bytes <= 1);
}

/// Whether the bytes are a head followed by arguments, each at its stated position, with the refs where the frame says.
template <class Head>
bool is_packed(const void* op, const op_frame& frame) noexcept
{
    using jit::launch_argument;
    const std::size_t size = frame.data.size();
    if (size < sizeof(Head))
        return false;
    const auto& head = *static_cast<const Head*>(op);
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
                           is_value(static_cast<const std::uint8_t*>(op) + a->offset, a->type));
        if (!sound)
            return false;
    }
    // prepare() overwrites refs to the results of earlier ops, so they must not overlap other data.
    std::size_t free_from = sizeof(Head) + head.count * sizeof(launch_argument);
    for (const op_field& f : frame.operands) {
        if (f.offset < free_from)
            return false;
        free_from = f.offset + sizeof(any_ref);
    }
    return true;
}

/// Names are not sent; these are the names that the parent uses.
template <class Head>
void name_operands(const void* op, std::vector<op_field>& operands)
{
    const auto& head = *static_cast<const Head*>(op);
    for (std::uint32_t i = 0; i < head.count; ++i)
        if (const auto operand = head.arguments()[i].operand; operand != jit::launch_argument::no_operand)
            operands[operand].name = detail::argument_name(i);
}

} // namespace

error_code remote_request::load(const submit_frame& frame, const detail::context& context,
                                const received_kernels& images, std::span<std::byte> staging)
{
    id_ = frame.id;
    options = frame.how;
    outcome = {};
    bytes = 0;
    while (cells_.size() < frame.size)
        cells_.emplace_back();
    bound_.assign(frame.size, bound_op{});
    for (std::size_t i = 0; i < frame.size; ++i)
        if (auto ec = load_op(frame.ops[i], i, context, images, staging))
            return ec;
    ops = bound_;
    return {};
}

error_code remote_request::load_op(const op_frame& frame, std::size_t i, const detail::context& context,
                                   const received_kernels& images, std::span<std::byte> staging)
{
    cell& c = cells_[i];
    bound_op& b = bound_[i];
    c.what = frame.what;
    c.made = {};
    c.kept.reset();
    switch (frame.what) {
    case op_kind::plain: {
        b.info = context.describe(frame.id);
        if (!b.info) {
            unsupported_ = static_cast<std::uint32_t>(i);
            return errc::unsupported_op;
        }
        if (frame.data.size() != b.info->size || frame.reply_size != b.info->reply_size)
            return errc::worker_corrupted;
        c.op.resize(detail::op_units(frame.data.size()));
        std::memcpy(c.op.data(), frame.data.data(), frame.data.size());
        c.reply.assign(detail::op_units(b.info->reply_size), {});
        b.op = c.op.data();
        b.reply = c.reply.data();
        // A transfer would contain addresses of another process.
        if (view_transfer(b))
            return errc::worker_corrupted;
        if (frame.id == info_of<jit::occupancy_op>().id) {
            auto& asked = *reinterpret_cast<jit::occupancy_op*>(c.op.data());
            const auto image = images.find(asked.kernel);
            if (!image)
                return jit::no_kernel("jit.occupancy");
            asked.kernel = image->id;
            c.kept = image;
        }
        break;
    }
    case op_kind::launch:
        if (auto ec = load_launch(frame, c, images))
            return ec;
        b.info = &c.own;
        b.op = c.op.data();
        break;
    case op_kind::allocate:
        b.info = &info_of<detail::allocate_op>();
        b.op = &(place<detail::allocate_op>(c.op) = {frame.count, frame.type});
        b.reply = &c.made;
        break;
    case op_kind::write:
    case op_kind::read: {
        const std::uint64_t size = size_of(frame.type);
        if (frame.offset > staging.size() || frame.count > (staging.size() - frame.offset) / size)
            return errc::worker_corrupted;
        bytes += frame.count * size;
        auto* memory = staging.data() + frame.offset;
        auto ec = with_type(
            frame.type,
            [&]<class T>(T) -> error_code {
                if (reinterpret_cast<std::uintptr_t>(memory) % alignof(T) != 0)
                    return errc::worker_corrupted;
                const auto ref = coaccel::ref<T>::from_raw(frame.ref);
                if (frame.what == op_kind::write) {
                    b.info = &info_of<detail::write_op<T>>();
                    b.op = &(place<detail::write_op<T>>(c.op) = {ref, reinterpret_cast<const T*>(memory), frame.count});
                } else {
                    b.info = &info_of<detail::read_op<T>>();
                    b.op = &(place<detail::read_op<T>>(c.op) = {ref, reinterpret_cast<T*>(memory), frame.count});
                }
                return {};
            },
            element_types{});
        if (ec)
            return ec;
        break;
    }
    }
    c.addresses.resize(b.info->operands.size());
    b.operands = c.addresses.data();
    return check_refs(c, *b.info, i) ? error_code{} : make_error_code(errc::worker_corrupted);
}

error_code remote_request::load_launch(const op_frame& frame, cell& c, const received_kernels& images)
{
    const std::size_t size = frame.data.size();
    c.op.resize(detail::op_units(size));
    std::memcpy(c.op.data(), frame.data.data(), size);
    if (frame.reply_size != 0)
        return errc::worker_corrupted;
    c.own.id = frame.id;
    c.own.size = static_cast<std::uint32_t>(size);
    c.own.operands.assign(frame.operands.begin(), frame.operands.end());
    if (frame.id == plugin::call_op_id) {
        if (!is_packed<plugin::call_head>(c.op.data(), frame))
            return errc::worker_corrupted;
        name_operands<plugin::call_head>(c.op.data(), c.own.operands);
        c.own.name = "plugin.call";
        c.own.lib = library::user;
        c.own.work = [](const void* op) noexcept { return static_cast<const plugin::call_head*>(op)->work(); };
        c.own.check = [](const void* op) { return plugin::check_call(*static_cast<const plugin::call_head*>(op)); };
        return {};
    }
    if (frame.id != jit::launch_op_id || !is_packed<jit::launch_head>(c.op.data(), frame))
        return errc::worker_corrupted;
    name_operands<jit::launch_head>(c.op.data(), c.own.operands);
    auto& head = *reinterpret_cast<jit::launch_head*>(c.op.data());
    const auto image = images.find(head.kernel);
    if (!image)
        return jit::no_kernel("jit.launch");
    head.kernel = image->id;
    head.host = 0;
    c.kept = image;
    c.own.name = "jit.launch";
    c.own.lib = library::jit;
    c.own.work = [](const void* op) noexcept { return static_cast<const jit::launch_head*>(op)->work(); };
    c.own.check = [](const void* op) { return jit::check_launch(*static_cast<const jit::launch_head*>(op)); };
    return {};
}

// The context rejects refs that are not its own; this only checks that they are well-formed.
bool remote_request::check_refs(cell& c, const op_info& info, std::size_t i) const noexcept
{
    for (const op_field& f : info.operands) {
        const any_ref& r = ref_at(c.op.data(), f);
        if (!is_dtype(r.type))
            return false;
        if (r.device != made_here)
            continue;
        if (r.slot >= i || cells_[r.slot].what != op_kind::allocate)
            return false;
    }
    return true;
}

void remote_request::prepare(std::size_t i) noexcept
{
    for (const op_field& f : bound_[i].info->operands) {
        any_ref& r = ref_at(cells_[i].op.data(), f);
        if (r.device != made_here)
            continue;
        any_ref made = cells_[r.slot].made.ref;
        made.offset = r.offset;
        made.size = r.size;
        made.type = r.type;
        r = made;
    }
}

void remote_request::put_replies(encoder& out, bool succeeded) const
{
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        const cell& c = cells_[i];
        if (c.what == op_kind::allocate)
            out.put_ref(c.made.ref);
        else if (c.what == op_kind::plain && succeeded)
            out.put_bytes({reinterpret_cast<const std::byte*>(c.reply.data()), bound_[i].info->reply_size});
    }
}

} // namespace coaccel::worker
