#include "host/exportable_memory.hpp"

#include <utility>

namespace coaccel::host {

using detail::sealed_memory;
using outside = memory_pool::outside;

result<void*> exportable_memory::allocate(std::size_t bytes)
{
    if (!limit_.count(outside::own, bytes))
        return errc::out_of_memory;
    return add(sealed_memory::create(bytes, "coaccel-shared"), outside::own, bytes);
}

result<void*> exportable_memory::map(const detail::unique_fd& descriptor, std::size_t bytes, memory_access access)
{
    if (!limit_.count(outside::shared, bytes))
        return errc::out_of_memory;
    return add(sealed_memory::open(descriptor, bytes, access), outside::shared, bytes);
}

result<void*> exportable_memory::add(result<sealed_memory> made, outside what, std::size_t bytes)
{
    if (!made) {
        limit_.uncount(what, bytes);
        return made.error();
    }
    void* const memory = made.value().data();
    const std::scoped_lock lock(mutex_);
    all_.emplace(memory, std::move(made).value());
    return memory;
}

result<detail::unique_fd> exportable_memory::seal(void* memory, memory_access access)
{
    const std::scoped_lock lock(mutex_);
    const auto found = all_.find(memory);
    if (found == all_.end() || found->second.sealed())
        return make_error_with_message(errc::invalid_argument, "memory.export: the memory was exported before");
    BOOST_OUTCOME_TRY(auto descriptor, found->second.seal(access));
    limit_.share(found->second.size());
    return descriptor;
}

void exportable_memory::release(void* memory) noexcept
{
    const std::scoped_lock lock(mutex_);
    const auto found = all_.find(memory);
    if (found == all_.end())
        return;
    limit_.uncount(found->second.sealed() ? outside::shared : outside::own, found->second.size());
    all_.erase(found);
}

} // namespace coaccel::host
