#ifndef COACCEL_CUDA_DRIVER_EVENT_POOL_HPP
#define COACCEL_CUDA_DRIVER_EVENT_POOL_HPP

#include "cuda/driver/driver_api.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace coaccel::cuda {

class event_pool;
class stream_state;

/// A word in page-locked memory, which a kernel sets as the last command of some work. Reading it costs a hundredth of
/// asking the driver about an event, and it is set earlier.
using completion_word = std::uint32_t;

/// An event taken from a pool, or a completion word in its place; empty until it is first recorded.
class pooled_event {
public:
    pooled_event() noexcept = default;
    pooled_event(event_pool& pool, CUevent e) noexcept : pool_(&pool), native_(e) {}
    pooled_event(pooled_event&& other) noexcept { swap(other); }

    pooled_event& operator=(pooled_event&& other) noexcept
    {
        pooled_event taken(std::move(other));
        swap(taken);
        return *this;
    }

    inline ~pooled_event();

    CUevent native() const noexcept { return native_; }
    explicit operator bool() const noexcept { return native_ != nullptr; }
    bool told() const noexcept { return word && std::atomic_ref(*word).load(std::memory_order_acquire) != 0; }

    /// The lane this event was recorded on.
    stream_state* where = nullptr;
    /// Is set when the work before the event has ended. Null: only the event tells.
    completion_word* word = nullptr;
    /// The event is on the stream. With a word, it is recorded only when another stream or a
    /// notification waits for it, or when other work follows.
    bool recorded = false;
    /// How often the word was not set.
    std::uint32_t misses = 0;

private:
    void swap(pooled_event& other) noexcept
    {
        std::swap(pool_, other.pool_);
        std::swap(native_, other.native_);
        std::swap(where, other.where);
        std::swap(word, other.word);
        std::swap(recorded, other.recorded);
        std::swap(misses, other.misses);
    }

    event_pool* pool_ = nullptr;
    CUevent native_ = nullptr;
};

/// A pool of reusable events. Use from one thread at a time; must outlive its events.
class event_pool {
public:
    event_pool(const driver_api& api, unsigned flags) noexcept : api_(api), flags_(flags) {}
    event_pool(const event_pool&) = delete;
    event_pool& operator=(const event_pool&) = delete;

    CUresult take(pooled_event& e) noexcept
    {
        if (free_.empty())
            if (const CUresult r = make(); r != CUDA_SUCCESS)
                return r;
        e = pooled_event(*this, free_.back());
        free_.pop_back();
        return CUDA_SUCCESS;
    }

    /// Does not reallocate: make() has reserved the space.
    void give_back(CUevent e) noexcept
    {
        if (!all_.empty())
            free_.push_back(e);
    }

    /// Destroys all events, also those that are not in the pool. No event may be taken or used after this.
    void clear() noexcept
    {
        for (CUevent e : all_)
            (void)api_.cuEventDestroy(e);
        all_.clear();
        free_.clear();
    }

private:
    CUresult make() noexcept
    {
        try {
            if (all_.size() == all_.capacity())
                all_.reserve(std::max<std::size_t>(16, 2 * all_.size()));
            free_.reserve(all_.capacity());
        } catch (...) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        CUevent made = nullptr;
        if (const CUresult r = api_.cuEventCreate(&made, flags_); r != CUDA_SUCCESS)
            return r;
        all_.push_back(made);
        free_.push_back(made);
        return CUDA_SUCCESS;
    }

    const driver_api& api_;
    unsigned flags_;
    std::vector<CUevent> all_;
    std::vector<CUevent> free_;
};

pooled_event::~pooled_event()
{
    if (native_)
        pool_->give_back(native_);
}

} // namespace coaccel::cuda

#endif
