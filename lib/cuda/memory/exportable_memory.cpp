#include "cuda/memory/exportable_memory.hpp"

#include "cuda/driver/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace coaccel::cuda {
namespace {

void* address_of(CUdeviceptr p) noexcept
{
    return reinterpret_cast<void*>(p);
}

} // namespace

exportable_memory::exportable_memory(const driver_api& api, driver_threads& helpers, device_memory& limit,
                                     check_result check, std::function<void()> on_change)
    : helpers_(helpers), limit_(limit), mapper_(api), check_(std::move(check)), on_change_(std::move(on_change))
{}

error_code exportable_memory::use(CUdevice device) noexcept
{
    const auto ec = check(mapper_.use(device));
    available_ = !ec;
    return ec;
}

result<void*> exportable_memory::allocate(std::size_t bytes)
{
    const std::size_t size = mapper_.rounded(bytes);
    attempt ended;
    {
        const std::scoped_lock lock(mutex_);
        const auto found = attempts_.find(size);
        if (found == attempts_.end()) {
            if (size == 0 || !limit_.has_room_for(size))
                return errc::out_of_memory;
            attempts_.emplace(size, attempt{});
            if (helpers_.run([this, size] { make(size); }))
                return nullptr;
            attempts_.erase(size);
            return errc::out_of_memory;
        }
        if (!found->second.ended)
            return nullptr;
        ended = found->second;
        attempts_.erase(found);
    }
    if (auto ec = check_(ended.result))
        return ec;
    return add(ended.made, outside::own);
}

void exportable_memory::make(std::size_t bytes) noexcept
{
    mapped_memory made;
    CUresult r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!helpers_.context_dead())
        r = mapper_.make(bytes, made).result;
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        limit_.trim();
        if (!helpers_.context_dead())
            r = mapper_.make(bytes, made).result;
    }
    if (is_sticky(r))
        helpers_.context_died();
    {
        const std::scoped_lock lock(mutex_);
        attempts_.at(bytes) = {.ended = true, .result = r, .made = made};
    }
    on_change_();
}

result<void*> exportable_memory::add(mapped_memory memory, outside counted)
try {
    all_.reserve(all_.size() + 1);
    if (!limit_.count(counted, memory.bytes)) {
        (void)check(mapper_.release(memory));
        return errc::out_of_memory;
    }
    void* const at = address_of(memory.address);
    all_.emplace(at, block{memory, counted});
    return at;
} catch (const std::bad_alloc&) {
    (void)check(mapper_.release(memory));
    return errc::out_of_memory;
}

result<detail::unique_fd> exportable_memory::export_memory(void* memory, memory_access access)
{
    const auto found = all_.find(memory);
    if (found == all_.end() || found->second.counted == outside::shared)
        return make_error_with_message(errc::invalid_argument, "memory.export: the memory was exported before");
    block& b = found->second;
    int made = -1;
    if (auto ec = check(mapper_.export_memory(b.memory, made)))
        return ec;
    auto descriptor = detail::above_standard(made);
    if (!descriptor || ::fcntl(descriptor.get(), F_SETFD, FD_CLOEXEC) != 0)
        return make_error_with_message(errc::out_of_memory,
                                       "memory.export: no descriptor: " + std::generic_category().message(errno));
    if (access == memory_access::read_only)
        if (auto ec = check(mapper_.set_access(b.memory, access)))
            return ec;
    if (auto ec = check(mapper_.drop_handle(b.memory)))
        return ec;
    limit_.share(b.memory.bytes);
    b.counted = outside::shared;
    return descriptor;
}

result<void*> exportable_memory::import_memory(const detail::unique_fd& descriptor, std::size_t bytes,
                                               memory_access access)
{
    const std::size_t size = mapper_.rounded(bytes);
    if (size == 0 || !limit_.has_room_for(size))
        return errc::out_of_memory;
    mapped_memory made;
    if (const auto r = mapper_.import_memory(descriptor.get(), size, access, made); !r)
        return refusal(r);
    return add(made, outside::shared);
}

/// Whether a descriptor is one of memory only the driver can tell, and it answers with various errors if not.
/// CUDA_ERROR_UNKNOWN is one of them, and does not mean here that the context is lost: if it is, the next call says so.
error_code exportable_memory::refusal(const mapping_result& r)
{
    if (r.result == CUDA_ERROR_OUT_OF_MEMORY || (is_sticky(r.result) && r.result != CUDA_ERROR_UNKNOWN))
        return check(r);
    return make_error_with_message(errc::invalid_argument,
                                   "memory.import: the memory cannot be mapped: " + std::string(r.function) + ": " +
                                       make_error(r.result).message());
}

void exportable_memory::release(void* memory) noexcept
{
    const auto found = all_.find(memory);
    if (found == all_.end())
        return;
    limit_.uncount(found->second.counted, found->second.memory.bytes);
    (void)check(mapper_.release(found->second.memory));
    all_.erase(found);
}

void exportable_memory::destroy() noexcept
{
    for (auto& [at, b] : all_) {
        limit_.uncount(b.counted, b.memory.bytes);
        (void)mapper_.release(b.memory);
    }
    all_.clear();
    for (auto& [bytes, a] : attempts_)
        if (a.ended && a.result == CUDA_SUCCESS)
            (void)mapper_.release(a.made);
    attempts_.clear();
}

} // namespace coaccel::cuda
