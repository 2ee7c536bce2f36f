#include "cuda/pinned_pool.hpp"

#include "cuda/error.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace coaccel::cuda {
namespace {

using slab = pinned_book::slab;

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

/// Null when there is none.
void* map_slab(std::size_t bytes) noexcept
{
    constexpr std::size_t huge = pinned_book::slab_unit;
    if (bytes < huge)
        return map(bytes, MAP_POPULATE);
    // Huge pages need their alignment, and to be asked for before the first touch.
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
    state(const driver_api& api_, backstage& helpers_, std::uint64_t limit)
        : api(api_), helpers(helpers_), book(limit, reserve_of(limit))
    {}

    /// Only on the backstage, and only between `enter` and `leave`.
    error_code make(slab& s) noexcept
    {
        void* memory = map_slab(s.bytes);
        if (!memory)
            return errc::out_of_memory;
        s.base = reinterpret_cast<std::uintptr_t>(memory);
        const CUresult r = api.cuMemHostRegister(memory, s.bytes, CU_MEMHOSTREGISTER_PORTABLE);
        if (r != CUDA_SUCCESS)
            unmap(s);
        return make_error(r);
    }

    void unmake(const slab& s) noexcept
    {
        (void)api.cuMemHostUnregister(address(s));
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
        // Under the lock, so that nobody is told after `listen` has taken it back.
        if (listener.function)
            listener.function(listener.argument);
    }

    bool start_growing(const std::shared_ptr<state>& self, const pinned_book::answer& a) noexcept
    {
        try {
            return helpers.run([self, wanted = a.wanted, give_up = a.give_up] { self->grow(wanted, give_up); });
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    void grow(slab wanted, const std::vector<slab>& give_up) noexcept
    {
        if (!enter()) {
            for (const slab& s : give_up)
                unmap(s);
            const std::scoped_lock lock(mutex);
            if (!detached)
                not_grown(wanted, errc::context_lost);
            return;
        }
        for (const slab& s : give_up)
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
        book.not_grown(wanted.shelf);
        try {
            refused[wanted.shelf] = why;
        } catch (const std::bad_alloc&) {
            // Who asks again gets the same answer by the same way.
        }
        if (!detached)
            tell();
    }

    error_code enter_into_book(const slab& s) noexcept
    {
        if (detached) {
            unmap(s);
            return errc::context_lost;
        }
        try {
            book.grown(s);
            return {};
        } catch (const std::bad_alloc&) {
            unmake(s);
            return errc::out_of_memory;
        }
    }

    const driver_api& api;
    backstage& helpers;
    std::mutex mutex;
    std::condition_variable quiet;
    pinned_book book;
    /// Growth that failed and nobody has been told of yet.
    std::map<pinned_book::shelf_key, error_code> refused;
    notification listener;
    bool waiting = false;
    bool detached = false;
    /// Jobs that are calling the driver.
    int inside = 0;
};

pinned_pool::pinned_pool(const driver_api& api, backstage& helpers, std::uint64_t limit)
    : state_(std::make_shared<state>(api, helpers, limit))
{}

pinned_pool::~pinned_pool()
{
    detach(true);
    const std::scoped_lock lock(state_->mutex);
    while (const auto s = state_->book.drop_any())
        unmap(*s);
}

std::uint64_t pinned_pool::reserve_of(std::uint64_t limit) noexcept
{
    constexpr std::uint64_t page = pinned_book::page;
    if (limit < 2 * page)
        return limit;
    const auto share = std::clamp<std::uint64_t>(limit / 8, pinned_book::slab_unit, pinned_book::largest_slab);
    return std::min(share, limit / 2) / page * page;
}

result<void*> pinned_pool::try_allocate(std::size_t bytes)
{
    return try_allocate(bytes, pinned_book::taker::user);
}

result<void*> pinned_pool::try_allocate_own(std::size_t bytes)
{
    return try_allocate(bytes, pinned_book::taker::own);
}

result<void*> pinned_pool::try_allocate(std::size_t bytes, pinned_book::taker who)
try {
    state& my = *state_;
    const std::scoped_lock lock(my.mutex);
    if (my.detached)
        return errc::context_lost;
    const pinned_book::shelf_key where{who, my.book.block_for(bytes, who)};
    if (const auto found = my.refused.find(where); found != my.refused.end()) {
        const error_code why = found->second;
        my.refused.erase(found);
        if (!my.book.has_free(where))
            return why;
    }
    auto answer = my.book.take(bytes, who);
    switch (answer.what) {
    case pinned_book::verdict::have: return reinterpret_cast<void*>(answer.block);
    case pinned_book::verdict::never: return errc::out_of_memory;
    case pinned_book::verdict::wait: my.waiting = true; return nullptr;
    case pinned_book::verdict::grow: break;
    }
    if (my.start_growing(state_, answer))
        return nullptr;
    my.book.not_grown(where);
    for (const slab& s : answer.give_up)
        my.book.add(s);
    return errc::out_of_memory;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

void pinned_pool::release(void* memory) noexcept
{
    state& my = *state_;
    const std::scoped_lock lock(my.mutex);
    my.book.give_back(reinterpret_cast<std::uintptr_t>(memory));
    if (my.detached) {
        while (const auto s = my.book.drop_unused())
            unmap(*s);
    } else if (my.waiting) {
        my.tell();
    }
}

void pinned_pool::listen(notification n) noexcept
{
    const std::scoped_lock lock(state_->mutex);
    state_->listener = n;
}

void pinned_pool::detach(bool alive) noexcept
{
    state& my = *state_;
    std::unique_lock lock(my.mutex);
    if (std::exchange(my.detached, true))
        return;
    // A job that is stuck in the driver of a dead context may never come out.
    if (alive)
        my.quiet.wait(lock, [&] { return my.inside == 0; });
    while (const auto s = my.book.drop_unused()) {
        if (alive)
            my.unmake(*s);
        else
            unmap(*s);
    }
    // What is still in use stays as it is, but for the driver, whose context goes.
    if (alive)
        my.book.for_each_slab([&](const slab& s) { (void)my.api.cuMemHostUnregister(address(s)); });
}

void pinned_pool::trim() noexcept
{
    state& my = *state_;
    if (!my.enter())
        return;
    std::unique_lock lock(my.mutex);
    while (!my.detached) {
        const auto s = my.book.drop_unused();
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
    return state_->book.used();
}

std::uint64_t pinned_pool::reserved() const noexcept
{
    const std::scoped_lock lock(state_->mutex);
    return state_->book.reserved();
}

} // namespace coaccel::cuda
