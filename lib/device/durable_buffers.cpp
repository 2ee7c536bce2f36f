#include "device/durable_buffers.hpp"

#include "context/buffers/operands.hpp"
#include "context/faults/op_problem.hpp"
#include "device/load_part.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace coaccel::detail {
namespace {

/// The op is in the memory of its request, which only lends it.
any_ref& mutable_operand(const bound_op& o, std::size_t i) noexcept
{
    return const_cast<any_ref&>(operand_of(o, i));
}

bool same_place(const any_ref& a, const any_ref& b) noexcept
{
    return a.device == b.device && a.generation == b.generation && a.slot == b.slot && a.version == b.version;
}

/// The same elements in another buffer.
void move_to(any_ref& r, const any_ref& buffer) noexcept
{
    r.generation = buffer.generation;
    r.slot = buffer.slot;
    r.version = buffer.version;
}

template <class Function>
void for_each_operand(request& r, Function function)
{
    for (std::size_t i = 0; i < r.ops.size(); ++i)
        for (std::size_t f = 0; f < r.ops[i].info->operands.size(); ++f)
            function(r.ops[i], f);
}

} // namespace

std::uint64_t durable_buffers::bytes() const noexcept
{
    std::uint64_t sum = 0;
    for (const auto& [number, e] : all_)
        sum += e.memory ? e.memory->bytes : 0;
    return sum;
}

std::size_t durable_buffers::suspects() const noexcept
{
    return static_cast<std::size_t>(
        std::ranges::count_if(all_, [](const auto& item) { return item.second.trust.suspect(); }));
}

durable_call* durable_buffers::first_call() const noexcept
{
    const auto found = std::ranges::find_if(all_, [](const auto& item) { return item.second.call != nullptr; });
    return found == all_.end() ? nullptr : found->second.call;
}

void durable_buffers::add(durable_call& call)
{
    const std::uint64_t number = ++made_;
    const any_ref name{.device = device_,
                       .generation = 0,
                       .slot = 0x80000000U | static_cast<std::uint32_t>(number & 0x7fffffffU),
                       .version = static_cast<std::uint32_t>(number >> 31),
                       .size = call.count,
                       .type = call.type};
    entry e;
    e.name = name;
    e.status = call.status;
    e.content = call.content;
    e.call = &call;
    all_.emplace(number, std::move(e));
    note_work();
}

any_ref durable_buffers::remove(durable_call& call) noexcept
{
    const auto found = std::ranges::find_if(all_, [&](const auto& item) { return item.second.call == &call; });
    if (found == all_.end())
        return {};
    found->second.call = nullptr;
    return release(found->second.name);
}

durable_buffers::entry* durable_buffers::find(const any_ref& name) noexcept
{
    const auto found = all_.find(number_of(name));
    return found == all_.end() || found->second.released ? nullptr : &found->second;
}

durable_buffers::entry* durable_buffers::find_here(const any_ref& buffer) noexcept
{
    const auto found = here_.find(buffer.slot);
    if (found == here_.end())
        return nullptr;
    entry& e = all_.find(found->second)->second;
    return same_place(e.here, buffer) ? &e : nullptr;
}

/// The entry does not exist afterwards.
void durable_buffers::drop(entry& e) noexcept
{
    leave_context(e);
    drop_content(e);
    all_.erase(number_of(e.name));
}

void durable_buffers::leave_context(entry& e) noexcept
{
    if (e.here.device != 0)
        here_.erase(e.here.slot);
    e.here = e.made = {};
    e.mapped = e.remade = false;
    e.unmapped = {};
    e.filled = 0;
    e.at = e.memory ? step::import : step::allocate;
}

/// Something about the buffers has changed.
void durable_buffers::note_work() noexcept
{
    ops_wait_ = has_imports_ = has_work_ = false;
    for (const auto& [number, e] : all_) {
        has_work_ |= e.has_work(scope::all);
        has_imports_ |= e.has_work(scope::imports);
        // A buffer that is being made has no refs yet, and so no op waits for it.
        ops_wait_ |= e.has_work(scope::imports) && !e.call;
    }
}

load_part* durable_buffers::next(scope what)
{
    if (pending_)
        return nullptr;
    // Imports first: all ops wait for them.
    for (const auto now : {scope::imports, scope::all}) {
        const auto found = std::ranges::find_if(all_, [&](const auto& item) { return item.second.has_work(now); });
        if (found != all_.end()) {
            pending_ = make(found->second).release();
            pending_for_ = found->first;
            found->second.mapped |= found->second.at == step::import;
            return pending_;
        }
        if (now == what)
            break;
    }
    return nullptr;
}

std::unique_ptr<load_part> durable_buffers::make(entry& e) const
{
    auto part = std::make_unique<load_part>();
    part->durable = true;
    const auto bytes = ref<std::uint8_t>::from_raw(e.made);
    switch (e.at) {
    case step::allocate:
        part->set(allocate_op{.count = e.bytes(), .type = dtype::u8, .kind = memory_kind::exportable});
        break;
    case step::fill:
        if (e.content)
            part->set(write_op<std::uint8_t>{.dst = bytes.subspan(e.filled, e.next_piece()),
                                             .src = reinterpret_cast<const std::uint8_t*>(e.content.get()) + e.filled,
                                             .count = e.next_piece()});
        else
            part->set(memory::fill<std::uint8_t>{.dst = bytes, .value = 0});
        break;
    case step::share:
        part->set(export_op{.buffer = bytes,
                            .access = e.content ? memory_access::read_only : memory_access::read_write,
                            .to = &part->memory});
        break;
    default: part->memory = e.memory; part->set(import_op{.from = &part->memory, .type = e.name.type});
    }
    return part;
}

durable_buffers::news durable_buffers::finished(load_part& part, const error_code& ec)
{
    const std::unique_ptr<load_part> own(&part);
    pending_ = nullptr;
    news n;
    const auto found = all_.find(pending_for_);
    if (found == all_.end())
        return n;
    entry& e = found->second;
    // In the next context the step is repeated.
    if (!ec || !is_end_of_context(ec))
        advance(e, part, ec, n);
    if (e.released) {
        for (const any_ref& r : {e.made, e.here})
            if (r.device != 0)
                n.unused = r;
        drop(e);
    }
    note_work();
    return n;
}

void durable_buffers::advance(entry& e, const load_part& part, const error_code& ec, news& n)
{
    if (ec && e.call) {
        n.call = std::exchange(e.call, nullptr);
        n.error = ec;
        e.released = true;
        return;
    }
    if (ec)
        return refused(e, ec, n);
    switch (e.at) {
    case step::allocate:
        e.made = part.reply<allocation>().ref;
        e.at = step::fill;
        break;
    case step::fill:
        e.filled += e.next_piece();
        if (!e.content || e.filled == e.bytes())
            e.at = step::share;
        break;
    case step::share:
        e.memory = part.memory;
        n.unused = std::exchange(e.made, {});
        e.at = step::import;
        break;
    default:
        e.here = part.reply<allocation>().ref;
        here_[e.here.slot] = number_of(e.name);
        e.at = step::ready;
        if (!e.call)
            return;
        n.call = std::exchange(e.call, nullptr);
        n.call->lease.made.ref = e.name;
    }
}

/// The context cannot have a buffer that its caller has. The next op that names it finds another attempt.
void durable_buffers::refused(entry& e, const error_code& ec, news& n)
{
    n.unmapped = ec;
    n.unused = std::exchange(e.made, {});
    e.mapped = false;
    e.filled = 0;
    const bool useless = e.at == step::import && e.content && is_useless(ec);
    if (useless)
        e.memory.reset();
    e.at = e.memory ? step::import : step::allocate;
    // Once, because memory that was made in this context may be refused too.
    if (!useless || std::exchange(e.remade, true))
        e.unmapped = ec;
}

/// Why an op cannot use the durable buffer that this operand names.
error_code durable_buffers::refusal(const bound_op& o, std::size_t operand, bool overwrites)
{
    const std::string_view field = o.info->operands[operand].name;
    entry* const e = find(operand_of(o, operand));
    if (!e)
        return operand_error(o, operand, errc::released_ref, {device_, 0}, {});
    const std::uint64_t number = number_of(e->name);
    if (e->content && writes(o.info->operands[operand].mode))
        return op_error(errc::invalid_argument, short_name(*o.info),
                        {field, " can only be read: it has the elements of a resident, which all workers share"});
    if (e->trust.suspect() && !overwrites)
        return op_error(errc::buffer_suspect, short_name(*o.info),
                        {field, " is durable buffer ", number, " of ", e->name.size, " elements of type ",
                         to_string(e->name.type),
                         ", which may have been half-written when a context was lost; decide with "
                         "device::async_trust or device::async_clear"});
    if (e->at == step::ready)
        return {};
    if (!e->unmapped)
        return op_error(errc::context_lost, short_name(*o.info),
                        {field, " is durable buffer ", number, ", which is not in the new context yet"});
    // The next op finds another attempt.
    const error_code why = std::exchange(e->unmapped, {});
    note_work();
    return op_error(errc_of(why) != errc{} ? errc_of(why) : errc::backend_error, short_name(*o.info),
                    {field, " is durable buffer ", number, ", which is not in the new context: ", why.message()});
}

void durable_buffers::note_start(request& r, entry& e, access mode) noexcept
{
    r.uses_durable = true;
    if (r.overwrites_durable)
        e.trust.overwrite_started();
    else if (writes(mode))
        e.trust.write_started();
    publish(e);
}

void durable_buffers::publish(entry& e) noexcept
{
    e.status->suspect.store(e.trust.suspect(), std::memory_order_relaxed);
}

error_code durable_buffers::begin(request& r)
{
    // The run of a plan names its own memory only.
    if (made_ == 0 || r.pool)
        return {};
    for (std::size_t i = 0; i < r.ops.size(); ++i)
        for (std::size_t f = 0; f < r.ops[i].info->operands.size(); ++f)
            if (names_durable(operand_of(r.ops[i], f)))
                if (auto ec = refusal(r.ops[i], f, r.overwrites_durable))
                    return placed(r, i, ec);
    for_each_operand(r, [&](const bound_op& o, std::size_t f) {
        const any_ref& ref = operand_of(o, f);
        const bool named = names_durable(ref);
        // A graph has the refs of the context in which it was recorded.
        entry* const e = named ? find(ref) : r.graph ? find_here(ref) : nullptr;
        if (!e)
            return;
        note_start(r, *e, o.info->operands[f].mode);
        if (named)
            move_to(mutable_operand(o, f), e->here);
    });
    return {};
}

error_code durable_buffers::enter_graph(std::span<const bound_op> ops)
{
    for (const bound_op& o : ops)
        for (std::size_t f = 0; f < o.info->operands.size(); ++f)
            if (names_durable(operand_of(o, f))) {
                if (auto ec = refusal(o, f, false))
                    return ec;
                move_to(mutable_operand(o, f), find(operand_of(o, f))->here);
            }
    return {};
}

void durable_buffers::end(request& r, const error_code& ec) noexcept
{
    if (!std::exchange(r.uses_durable, false))
        return;
    using ending = durable_trust::ending;
    const ending how = !ec ? ending::done : is_end_of_context(ec) ? ending::lost : ending::failed;
    for_each_operand(r, [&](const bound_op& o, std::size_t f) {
        // A buffer that was released meanwhile is not found, and needs nothing.
        entry* const e = find_here(operand_of(o, f));
        if (!e)
            return;
        if (r.overwrites_durable)
            e->trust.overwrite_ended(how);
        else if (writes(o.info->operands[f].mode))
            e->trust.write_ended(how);
        publish(*e);
        if (!r.graph)
            move_to(mutable_operand(o, f), e->name);
    });
}

error_code durable_buffers::trust(const any_ref& buffer) noexcept
{
    constexpr std::string_view name = "async_trust";
    if (buffer.device == 0)
        return op_error(errc::invalid_argument, name, {"the buffer is empty"});
    if (buffer.device != device_)
        return op_error(errc::wrong_device, name, {"the buffer belongs to another device"});
    entry* const e = find(buffer);
    if (!e)
        return op_error(errc::released_ref, name, {"the buffer has been released"});
    e->trust.trust();
    publish(*e);
    return {};
}

any_ref durable_buffers::release(const any_ref& buffer) noexcept
{
    entry* const e = find(buffer);
    if (!e)
        return {};
    if (pending_ && pending_for_ == number_of(e->name)) {
        e->released = true;
        note_work();
        return {};
    }
    const any_ref unused = e->here.device != 0 ? e->here : e->made;
    drop(*e);
    note_work();
    return unused;
}

void durable_buffers::context_lost(loss_cause cause) noexcept
{
    using mapping = durable_trust::mapping;
    for (auto& [number, e] : all_) {
        if (e.content) {
            leave_context(e);
            continue;
        }
        // The caller does not have it yet, so it is made anew instead of being suspect.
        if (e.call)
            e.memory.reset();
        else
            e.trust.context_lost(cause, e.mapped ? mapping::writable : mapping::none);
        publish(e);
        leave_context(e);
    }
    note_work();
}

void durable_buffers::context_closed() noexcept
{
    for (auto& [number, e] : all_) {
        e.trust.context_closed();
        leave_context(e);
    }
    note_work();
}

void durable_buffers::drop_content(entry& e) noexcept
{
    if (!e.content)
        return;
    try {
        dropped_.push_back(std::move(e.content));
    } catch (const std::bad_alloc&) {
        // It is freed with the entry.
    }
}

void durable_buffers::distrust_contents() noexcept
{
    for (auto& [number, e] : all_) {
        if (!e.content)
            continue;
        // One that is being imported, or was, is used until its context ends.
        e.memory.reset();
        if (e.at == step::import && !(pending_ && pending_for_ == number))
            e.at = step::allocate;
    }
    note_work();
}

void durable_buffers::clear() noexcept
{
    for (auto& [number, e] : all_)
        drop_content(e);
    here_.clear();
    all_.clear();
    made_ = 0;
    note_work();
}

void durable_buffers::take_dropped(owner_list& out)
{
    for (auto& content : dropped_)
        out.push_back(std::const_pointer_cast<std::byte>(std::move(content)));
    dropped_.clear();
}

} // namespace coaccel::detail
