#include "worker/transport/staging.hpp"

#include <algorithm>

namespace coaccel::worker {
namespace {

constexpr std::uint64_t least_for_copies = std::uint64_t(512) << 10;

} // namespace

result<std::shared_ptr<staging>> staging::create(std::uint64_t bytes)
{
    const std::uint64_t whole = (bytes + range_allocator::page - 1) / range_allocator::page * range_allocator::page;
    BOOST_OUTCOME_TRY(auto area, detail::shared_memory::create(whole, "coaccel-staging"));
    return std::make_shared<staging>(std::move(area));
}

staging::staging(detail::shared_memory area)
    : area_(std::move(area)), most_pinned_(bytes() - std::max(bytes() / 8, least_for_copies)), ranges_(bytes())
{}

result<void*> staging::try_allocate(std::size_t bytes)
try {
    const std::scoped_lock lock(mutex_);
    if (bytes > most_pinned_)
        return errc::out_of_memory;
    if (pinned_ <= most_pinned_ - bytes)
        if (const auto offset = ranges_.take(bytes)) {
            pinned_ += ranges_.size_at(*offset);
            return at(*offset);
        }
    put_off_ = true;
    return nullptr;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

void staging::release(void* memory) noexcept
{
    const std::scoped_lock lock(mutex_);
    const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - at(0));
    pinned_ -= ranges_.size_at(offset);
    ranges_.give_back(offset);
    // Under the lock, so that no notification follows `listen` with an empty one.
    if (std::exchange(put_off_, false) && listener_.function)
        listener_.function(listener_.argument);
}

std::optional<std::uint64_t> staging::take(std::uint64_t bytes)
{
    const std::scoped_lock lock(mutex_);
    const auto offset = ranges_.take(bytes);
    put_off_ |= !offset;
    return offset;
}

void staging::give_back(std::uint64_t offset) noexcept
{
    const std::scoped_lock lock(mutex_);
    ranges_.give_back(offset);
    if (std::exchange(put_off_, false) && listener_.function)
        listener_.function(listener_.argument);
}

std::optional<std::uint64_t> staging::offset_of(const void* memory, std::uint64_t bytes) const noexcept
{
    const auto first = reinterpret_cast<std::uintptr_t>(at(0));
    const auto p = reinterpret_cast<std::uintptr_t>(memory);
    if (p < first || p - first > this->bytes() || bytes > this->bytes() - (p - first))
        return std::nullopt;
    return p - first;
}

void staging::listen(notification n) noexcept
{
    const std::scoped_lock lock(mutex_);
    if (n.function) {
        ++listeners_;
        listener_ = n;
    } else if (listeners_ > 0 && --listeners_ == 0) {
        listener_ = {};
    }
}

std::uint64_t staging::pinned() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return pinned_;
}

} // namespace coaccel::worker
