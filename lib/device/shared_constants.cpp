#include "device/shared_constants.hpp"

#include <utility>

namespace coaccel::detail {

std::shared_ptr<const shared_constant> shared_constants::find(const constant_group& c) const noexcept
{
    for (const auto& entry : all_)
        if (auto found = entry.lock(); found && found->content == c)
            return found;
    return nullptr;
}

std::shared_ptr<const shared_constant> shared_constants::add(const constant_group& c,
                                                             std::shared_ptr<const exported_memory> memory)
{
    if (auto found = find(c))
        return found;
    std::erase_if(all_, [](const auto& entry) { return entry.expired(); });
    auto made = std::make_shared<const shared_constant>(shared_constant{c, std::move(memory)});
    all_.push_back(made);
    return made;
}

void shared_constants::discard(const shared_constant& c) noexcept
{
    std::erase_if(all_, [&](const auto& entry) { return entry.lock().get() == &c; });
}

std::uint64_t shared_constants::bytes() const noexcept
{
    std::uint64_t sum = 0;
    for (const auto& entry : all_)
        if (const auto found = entry.lock())
            sum += found->memory->bytes;
    return sum;
}

} // namespace coaccel::detail
