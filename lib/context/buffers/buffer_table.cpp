#include "context/buffers/buffer_table.hpp"

#include <utility>

namespace coaccel::detail {

any_ref buffer_table::insert(void* memory, std::uint64_t size, dtype type, memory_kind kind)
{
    std::uint32_t index = static_cast<std::uint32_t>(slots_.size());
    if (free_.empty()) {
        slots_.emplace_back();
        // Reserved here so that `retire` cannot fail.
        free_.reserve(slots_.size());
    } else {
        index = free_.back();
        free_.pop_back();
    }
    slot& s = slots_[index];
    s.memory = memory;
    s.size = size;
    s.type = type;
    s.kind = kind;
    s.live = true;
    s.log = {};
    s.owner.reset();
    ++s.version;
    ++live_;
    return {identity_.device, identity_.generation, index, s.version, 0, size, type};
}

any_ref buffer_table::adopt(void* memory, std::uint64_t size, dtype type, std::shared_ptr<void> owner)
{
    const any_ref made = insert(memory, size, type);
    slots_[made.slot].owner = std::move(owner);
    return made;
}

void buffer_table::take_owners(owner_list& out) noexcept
{
    for (slot& s : slots_)
        if (s.owner)
            out.push_back(std::exchange(*s.owner, nullptr));
}

result<buffer_table::slot*> buffer_table::find(const any_ref& ref, dtype type) noexcept
{
    if (auto ec = check_origin(ref, identity_))
        return ec;
    if (ref.slot >= slots_.size())
        return errc::out_of_bounds;
    slot& s = slots_[ref.slot];
    if (!s.live || s.version != ref.version)
        return errc::released_ref;
    if (ref.type != type || s.type != type)
        return errc::wrong_dtype;
    if (ref.offset > s.size || ref.size > s.size - ref.offset)
        return errc::out_of_bounds;
    return &s;
}

std::optional<buffer_facts> buffer_table::facts(const any_ref& ref) const noexcept
{
    if (ref.slot >= slots_.size())
        return std::nullopt;
    return buffer_facts{slots_[ref.slot].size, slots_[ref.slot].type};
}

std::optional<retired_buffer> buffer_table::retire(const any_ref& ref) noexcept
{
    if (ref.device != identity_.device || ref.generation != identity_.generation || ref.slot >= slots_.size())
        return std::nullopt;
    slot& s = slots_[ref.slot];
    if (!s.live || s.version != ref.version)
        return std::nullopt;
    s.live = false;
    --live_;
    free_.push_back(ref.slot);
    return retired_buffer{std::exchange(s.memory, nullptr), s.size * size_of(s.type), s.kind, std::move(s.log),
                          std::exchange(s.owner, std::nullopt)};
}

error_code check_origin(const any_ref& ref, context_identity identity) noexcept
{
    if (ref.device == 0)
        return errc::invalid_argument;
    if (ref.device != identity.device)
        return errc::wrong_device;
    return ref.generation == identity.generation ? error_code() : make_error_code(errc::stale_ref);
}

} // namespace coaccel::detail
