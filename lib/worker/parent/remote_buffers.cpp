#include "worker/parent/remote_buffers.hpp"

namespace coaccel::worker {

bool remote_buffers::add(const any_ref& made)
{
    if (!entries_.emplace(made.slot, entry{made.version, made.type, made.size}).second)
        return false;
    ++live_;
    return true;
}

void remote_buffers::remove(const any_ref& buffer) noexcept
{
    const auto found = entries_.find(buffer.slot);
    if (found != entries_.end() && found->second.version == buffer.version)
        entries_.erase(found);
}

error_code remote_buffers::check(const any_ref& ref, dtype type, detail::context_identity identity) const noexcept
{
    if (auto ec = detail::check_origin(ref, identity))
        return ec;
    const auto found = entries_.find(ref.slot);
    if (found == entries_.end() || found->second.version != ref.version)
        return errc::released_ref;
    const entry& e = found->second;
    if (ref.type != type || e.type != type)
        return errc::wrong_dtype;
    if (ref.offset > e.size || ref.size > e.size - ref.offset)
        return errc::out_of_bounds;
    return {};
}

std::optional<detail::buffer_facts> remote_buffers::facts(const any_ref& ref) const noexcept
{
    const auto found = entries_.find(ref.slot);
    if (found == entries_.end())
        return std::nullopt;
    return detail::buffer_facts{found->second.size, found->second.type};
}

} // namespace coaccel::worker
