#include "cuda/memory/pinned_pool.hpp"

#include "cuda/driver/error.hpp"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace coaccel::cuda {
namespace {

using slab = pinned_slabs::slab;

void* address(const slab& s) noexcept
{
    return reinterpret_cast<void*>(s.base);
}

void unmap(const slab& s) noexcept
{
    (void)::munmap(address(s), s.bytes);
}

void* map(std::size_t bytes, int flags) noexcept
{
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

/// Null on failure.
void* map_slab(std::size_t bytes) noexcept
{
    constexpr std::size_t huge = pinned_slabs::slab_unit;
    if (bytes < huge)
        return map(bytes, MAP_POPULATE);
    // Huge pages require alignment, and madvise before the first access.
    auto* outer = static_cast<char*>(map(bytes + huge, MAP_NORESERVE));
    if (!outer)
        return nullptr;
    const std::size_t before = (huge - reinterpret_cast<std::uintptr_t>(outer) % huge) % huge;
    if (before != 0)
        (void)::munmap(outer, before);
    if (before != huge)
        (void)::munmap(outer + before + bytes, huge - before);
    (void)::madvise(outer + before, bytes, MADV_HUGEPAGE);
    return outer + before;
}

} // namespace

struct pinned_pool::state {
    using slab_lists = std::list<std::vector<slab>>;

    state(const driver_api& api_, driver_threads& helpers_, std::uint64_t limit)
        : api(api_), helpers(helpers_), slabs(limit, reserve_of(limit))
    {}

    /// Call only on the thread pool, between `enter` and `leave`.
    error_code make(slab& s) noexcept
    {
        void* memory = map_slab(s.bytes);
        if (!memory)
            return errc::out_of_memory;
        s.base = reinterpret_cast<std::uintptr_t>(memory);
        const CUresult r = api.cuMemHostRegister(memory, s.bytes, how_to_register);
        if (r != CUDA_SUCCESS)
            unmap(s);
        return make_error(r);
    }

    void unmake(const slab& s) noexcept
    {
        (void)api.cuMemHostUnregister(address(s));
        unmap(s);
    }

    /// Preconditions: detached.
    void discard(const slab& s) const noexcept
    {
        if (why != context_end::hung)
            unmap(s);
    }

    bool enter() noexcept
    {
        const std::scoped_lock lock(mutex);
        const bool may = !detached && !helpers.context_dead();
        inside += may;
        return may;
    }

    void leave() noexcept
    {
        if (--inside == 0)
            quiet.notify_all();
    }

    void tell() noexcept
    {
        waiting = false;
        // Under the lock, so that no notification is sent after `listen` has removed the listener.
        if (listener.function)
            listener.function(listener.argument);
    }

    bool start_growing(const std::shared_ptr<state>& self, const pinned_slabs::answer& a) noexcept
    {
        auto before = giving_up.end();
        try {
            before = giving_up.insert(giving_up.end(), a.give_up);
            if (helpers.run([self, wanted = a.wanted, before] { self->grow(wanted, before); }))
                return true;
        } catch (const std::bad_alloc&) {
            // As if no thread could be started.
        }
        if (before != giving_up.end())
            giving_up.erase(before);
        return false;
    }

    void grow(slab wanted, slab_lists::iterator before) noexcept
    {
        slab_lists give_up;
        {
            const std::scoped_lock lock(mutex);
            // Then the slabs to give up are gone too.
            if (detached)
                return;
            give_up.splice(give_up.end(), giving_up, before);
            if (helpers.context_dead()) {
                for (const slab& s : give_up.front())
                    unmap(s);
                return not_grown(wanted, errc::context_lost);
            }
            ++inside;
        }
        for (const slab& s : give_up.front())
            unmake(s);
        error_code ec = make(wanted);

        const std::scoped_lock lock(mutex);
        leave();
        if (!ec)
            ec = enter_into_book(wanted);
        if (ec)
            not_grown(wanted, ec);
        else if (!detached)
            tell();
    }

    void not_grown(const slab& wanted, error_code why) noexcept
    {
        slabs.not_grown(wanted.size_class);
        try {
            refused[wanted.size_class] = why;
        } catch (const std::bad_alloc&) {
            // The next request then grows again and gets the same result.
        }
        if (!detached)
            tell();
    }

    error_code enter_into_book(const slab& s) noexcept
    {
        if (detached) {
            // detach() has waited for this job if the context is healthy.
            if (why == context_end::healthy && !helpers.context_dead())
                unmake(s);
            else
                discard(s);
            return errc::context_lost;
        }
        try {
            slabs.grown(s);
            return {};
        } catch (const std::bad_alloc&) {
            unmake(s);
            return errc::out_of_memory;
        }
    }

    const driver_api& api;
    driver_threads& helpers;
    std::mutex mutex;
    std::condition_variable quiet;
    pinned_slabs slabs;
    /// Failed growth that was not reported yet.
    std::map<pinned_slabs::size_class_key, error_code> refused;
    /// Not in `slabs`, by address.
    std::map<void*, slab> kept;
    std::uint64_t kept_bytes = 0;
    /// Slabs that queued jobs give up. Not in the jobs, which are dropped if the thread pool stops.
    slab_lists giving_up;
    notification listener;
    bool waiting = false;
    bool detached = false;
    context_end why = context_end::healthy;
    /// detach() has ended.
    bool settled = false;
    /// Number of jobs inside the driver.
    int inside = 0;
};

pinned_pool::pinned_pool(const driver_api& api, driver_threads& helpers, std::uint64_t limit)
    : state_(std::make_shared<state>(api, helpers, limit))
{}

pinned_pool::~pinned_pool()
{
    detach(context_end::healthy);
    const std::scoped_lock lock(state_->mutex);
    while (const auto s = state_->slabs.drop_any())
        state_->discard(*s);
    for (const auto& [memory, s] : state_->kept)
        state_->discard(s);
    state_->kept.clear();
}

std::uint64_t pinned_pool::reserve_of(std::uint64_t limit) noexcept
{
    constexpr std::uint64_t page = pinned_slabs::page;
    if (limit < 2 * page)
        return limit;
    const auto share = std::clamp<std::uint64_t>(limit / 8, pinned_slabs::slab_unit, pinned_slabs::largest_slab);
    return std::min(share, limit / 2) / page * page;
}

result<void*> pinned_pool::try_allocate(std::size_t bytes)
{
    return try_allocate(bytes, pinned_slabs::client::user);
}

result<void*> pinned_pool::try_allocate_own(std::size_t bytes)
{
    return try_allocate(bytes, pinned_slabs::client::own);
}

result<void*> pinned_pool::try_allocate(std::size_t bytes, pinned_slabs::client who)
try {
    state& my = *state_;
    const std::scoped_lock lock(my.mutex);
    if (my.detached)
        return errc::context_lost;
    const pinned_slabs::size_class_key where{who, my.slabs.block_for(bytes, who)};
    if (const auto found = my.refused.find(where); found != my.refused.end()) {
        const error_code why = found->second;
        my.refused.erase(found);
        if (!my.slabs.has_free(where))
            return why;
    }
    auto answer = my.slabs.take(bytes, who);
    switch (answer.what) {
    case pinned_slabs::verdict::have: return reinterpret_cast<void*>(answer.block);
    case pinned_slabs::verdict::never: return errc::out_of_memory;
    case pinned_slabs::verdict::wait: my.waiting = true; return nullptr;
    case pinned_slabs::verdict::grow: break;
    }
    if (my.start_growing(state_, answer))
        return nullptr;
    my.slabs.not_grown(where);
    for (const slab& s : answer.give_up)
        my.slabs.add(s);
    return errc::out_of_memory;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

void pinned_pool::release(void* memory) noexcept
{
    state& my = *state_;
    const std::scoped_lock lock(my.mutex);
    my.slabs.give_back(reinterpret_cast<std::uintptr_t>(memory));
    if (my.detached) {
        // Until detach() has unregistered the slabs, they are left to it.
        while (const auto s = my.settled ? my.slabs.drop_unused() : std::nullopt)
            my.discard(*s);
    } else if (my.waiting) {
        my.tell();
    }
}

result<void*> pinned_pool::allocate_to_keep(std::size_t bytes)
{
    state& my = *state_;
    if (!my.enter())
        return errc::context_lost;
    slab s{.bytes = (bytes + pinned_slabs::page - 1) / pinned_slabs::page * pinned_slabs::page};
    error_code ec = my.make(s);
    if (!ec) {
        const std::scoped_lock lock(my.mutex);
        try {
            my.kept.emplace(address(s), s);
            my.kept_bytes += s.bytes;
        } catch (const std::bad_alloc&) {
            my.unmake(s);
            ec = errc::out_of_memory;
        }
    }
    const std::scoped_lock lock(my.mutex);
    my.leave();
    if (ec)
        return ec;
    return address(s);
}

void pinned_pool::release_kept(void* memory) noexcept
{
    state& my = *state_;
    const bool alive = my.enter();
    slab s;
    {
        const std::scoped_lock lock(my.mutex);
        const auto found = my.kept.find(memory);
        s = found->second;
        my.kept.erase(found);
        my.kept_bytes -= s.bytes;
    }
    if (!alive)
        return my.discard(s);
    my.unmake(s);
    const std::scoped_lock lock(my.mutex);
    my.leave();
}

void pinned_pool::listen(notification n) noexcept
{
    const std::scoped_lock lock(state_->mutex);
    state_->listener = n;
}

void pinned_pool::detach(context_end why) noexcept
{
    const bool healthy = why == context_end::healthy;
    state& my = *state_;
    std::unique_lock lock(my.mutex);
    if (std::exchange(my.detached, true))
        return;
    my.why = why;
    // Otherwise a job may be stuck in the driver for ever.
    if (healthy)
        my.quiet.wait(lock, [&] { return my.inside == 0; });
    const auto drop = [&](const slab& s) {
        if (healthy)
            my.unmake(s);
        else
            my.discard(s);
    };
    for (const auto& some : my.giving_up)
        for (const slab& s : some)
            drop(s);
    my.giving_up.clear();
    while (const auto s = my.slabs.drop_unused())
        drop(*s);
    // Blocks still in use stay mapped; only their registration ends here.
    if (healthy)
        my.slabs.for_each_slab([&](const slab& s) { (void)my.api.cuMemHostUnregister(address(s)); });
    if (healthy)
        for (const auto& [memory, s] : my.kept)
            (void)my.api.cuMemHostUnregister(memory);
    my.settled = true;
}

void pinned_pool::trim() noexcept
{
    state& my = *state_;
    if (!my.enter())
        return;
    std::unique_lock lock(my.mutex);
    while (!my.detached) {
        const auto s = my.slabs.drop_unused();
        if (!s)
            break;
        lock.unlock();
        my.unmake(*s);
        lock.lock();
    }
    my.leave();
    if (my.waiting && !my.detached)
        my.tell();
}

std::uint64_t pinned_pool::used() const noexcept
{
    const std::scoped_lock lock(state_->mutex);
    return state_->slabs.used() + state_->kept_bytes;
}

std::uint64_t pinned_pool::reserved() const noexcept
{
    const std::scoped_lock lock(state_->mutex);
    return state_->slabs.reserved() + state_->kept_bytes;
}

} // namespace coaccel::cuda
