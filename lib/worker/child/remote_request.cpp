#include "worker/child/remote_request.hpp"

#include "context/buffers/operands.hpp"
#include "jit/image.hpp"
#include "jit/registry.hpp"
#include "worker/transport/chunked_copy.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>
#include <coaccel/ops/plugin.hpp>

#include <cstring>
#include <utility>

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

} // namespace

error_code remote_request::load(const submit_frame& frame, const detail::context& context, const kernel_source& images,
                                std::span<std::byte> staging)
{
    begin(frame, frame.size);
    for (std::size_t i = 0; i < frame.size; ++i)
        if (auto ec = load_op(frame.ops[i], i, context, images, staging))
            return ec;
    // The end of an unload has consequences of its own, for which it must not depend on other ops.
    if (step_ != plan_step::none && frame.size > 1)
        return errc::worker_corrupted;
    ops = bound_;
    return {};
}

/// Returns the first cell.
remote_request::cell& remote_request::begin(const request_head& head, std::size_t ops)
{
    id_ = head.id;
    options = head.how;
    outcome = {};
    bytes = 0;
    step_ = plan_step::none;
    while (cells_.size() < ops)
        cells_.emplace_back();
    bound_.assign(ops, bound_op{});
    return cells_[0];
}

void remote_request::load(const load_frame& frame, std::shared_ptr<const detail::plan_data> plan)
{
    cell& c = begin(frame.head, 1);
    step_ = plan_step::load;
    instance_ = frame.instance;
    c.what = op_kind::plain;
    c.load = detail::make_load_info(*plan);
    const detail::plan_load_head head{frame.instance, frame.chain, plan.get()};
    c.op.resize(detail::op_units(c.load.size));
    std::memcpy(c.op.data(), &head, sizeof(head));
    std::memcpy(reinterpret_cast<std::byte*>(c.op.data()) + sizeof(head), frame.refs.data(),
                frame.refs.size() * sizeof(any_ref));
    c.reply.assign(detail::op_units(c.load.reply_size), {});
    c.addresses.resize(c.load.operands.size());
    c.kept = std::move(plan);
    bound_[0] = {.info = &c.load, .op = c.op.data(), .reply = c.reply.data(), .operands = c.addresses.data()};
    ops = bound_;
}

error_code remote_request::load(const run_frame& frame, const plan_instances& instances, std::span<std::byte> staging)
{
    cell& c = begin(frame.head, 1);
    step_ = plan_step::run;
    instance_ = frame.instance;
    c.ran = {};
    c.what = op_kind::plain;
    const plan_instances::entry* const loaded = instances.find(frame.instance);
    if (!loaded)
        return no_instance(detail::plan_run_op::name, frame.instance);
    const detail::plan_data& p = *loaded->plan;
    // A backend uses the buffer that the load named, so this one is checked in its place.
    if (frame.chain != loaded->chain || frame.memory != loaded->memory())
        return errc::worker_corrupted;
    c.kept = loaded->plan;
    c.arguments.clear();
    const auto add = [&](const std::vector<staged_argument>& arguments, const detail::byte_range& all) {
        for (const staged_argument& a : arguments) {
            const bool inside = a.where.offset >= all.offset && a.where.offset - all.offset <= all.bytes &&
                                a.where.bytes <= all.bytes - (a.where.offset - all.offset);
            if (!inside || a.offset > staging.size() || a.where.bytes > staging.size() - a.offset)
                return false;
            c.arguments.push_back({staging.data() + a.offset, a.where});
            bytes += a.where.bytes;
        }
        return true;
    };
    if (!add(frame.inputs, p.staged_inputs) || !add(frame.outputs, p.staged_outputs))
        return errc::worker_corrupted;
    bound_op& b = bound_[0];
    if (loaded->run) {
        c.kept = loaded->run;
        c.op = loaded->run->op();
        c.addresses.resize(loaded->run->info().operands.size());
        b = {.info = &loaded->run->info(), .op = c.op.data(), .operands = c.addresses.data()};
        ops = bound_;
        return {};
    }
    b.info = &info_of<detail::plan_run_op>();
    auto& op = place<detail::plan_run_op>(c.op);
    op.memory = ref<std::uint8_t>::from_raw(frame.memory);
    op.instance = frame.instance;
    op.chain = frame.chain;
    op.inputs = c.arguments.data();
    op.input_count = static_cast<std::uint32_t>(frame.inputs.size());
    op.outputs = c.arguments.data() + frame.inputs.size();
    op.output_count = static_cast<std::uint32_t>(frame.outputs.size());
    c.addresses.resize(b.info->operands.size());
    b.op = &op;
    b.reply = &c.ran;
    b.operands = c.addresses.data();
    ops = bound_;
    return {};
}

error_code remote_request::load_op(const op_frame& frame, std::size_t i, const detail::context& context,
                                   const kernel_source& images, std::span<std::byte> staging)
{
    cell& c = cells_[i];
    bound_op& b = bound_[i];
    c.what = frame.what;
    c.made = {};
    c.kept.reset();
    switch (frame.what) {
    case op_kind::plain: {
        // A backend does not describe the ops of plans, because most of them contain addresses.
        const bool unloads = frame.id == info_of<detail::plan_unload_op>().id;
        b.info = unloads ? &info_of<detail::plan_unload_op>() : context.describe(frame.id);
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
        // A transfer or a run would contain addresses of another process.
        if (view_transfer(b) || frame.id == info_of<detail::plan_run_op>().id)
            return errc::worker_corrupted;
        if (unloads) {
            step_ = plan_step::unload;
            instance_ = b.as<detail::plan_unload_op>().instance;
        }
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
        b.op = &(place<detail::allocate_op>(c.op) = {frame.count, frame.type, frame.kind});
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

error_code remote_request::load_launch(const op_frame& frame, cell& c, const kernel_source& images)
{
    const std::size_t size = frame.data.size();
    c.op.resize(detail::op_units(size));
    std::memcpy(c.op.data(), frame.data.data(), size);
    if (frame.reply_size != 0)
        return errc::worker_corrupted;
    return describe_packed({frame.id, std::as_writable_bytes(std::span(c.op)).first(size), frame.operands}, images,
                           c.own, c.kept);
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
    // Most runs are not measured, and have no reply.
    if (step_ == plan_step::run && succeeded && cells_[0].ran.nanoseconds != 0)
        out.put(cells_[0].ran.nanoseconds);
}

} // namespace coaccel::worker
