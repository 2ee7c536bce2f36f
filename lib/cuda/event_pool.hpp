#ifndef COACCEL_CUDA_EVENT_POOL_HPP
#define COACCEL_CUDA_EVENT_POOL_HPP

#include "cuda/load/driver_api.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace coaccel::cuda {

class event_pool;
class stream_state;

/// An event on loan from a pool; empty until it is first recorded.
class pooled_event {
public:
    pooled_event() noexcept = default;
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

    /// The lane it was recorded on, and as which of its records.
    stream_state* where = nullptr;
    std::uint64_t order = 0;
    /// The lane's mark tells that it has passed; the event itself is recorded only when somebody needs one.
    bool marked = false;

private:
    friend class event_pool;

    void swap(pooled_event& other) noexcept
    {
        std::swap(pool_, other.pool_);
        std::swap(native_, other.native_);
        std::swap(where, other.where);
        std::swap(order, other.order);
        std::swap(marked, other.marked);
    }

    event_pool* pool_ = nullptr;
    CUevent native_ = nullptr;
};

/// Events to be used again. For one thread at a time; outlives its events.
class event_pool {
public:
    event_pool(const driver_api& api, unsigned flags) noexcept : api_(api), flags_(flags) {}
    event_pool(const event_pool&) = delete;
    event_pool& operator=(const event_pool&) = delete;

    /// For one that is empty.
    CUresult take(pooled_event& e) noexcept
    {
        CUevent made = nullptr;
        if (!free_.empty()) {
            made = free_.back();
            free_.pop_back();
        } else if (auto r = api_.cuEventCreate(&made, flags_); r != CUDA_SUCCESS) {
            return r;
        }
        e.pool_ = this;
        e.native_ = made;
        return CUDA_SUCCESS;
    }

    void give_back(CUevent e) noexcept
    {
        try {
            free_.push_back(e);
        } catch (...) {
            // Lost until its context goes.
        }
    }

    /// Destroys the events that are not on loan.
    void clear() noexcept
    {
        for (CUevent e : free_)
            (void)api_.cuEventDestroy(e);
        free_.clear();
    }

private:
    const driver_api& api_;
    unsigned flags_;
    std::vector<CUevent> free_;
};

pooled_event::~pooled_event()
{
    if (native_)
        pool_->give_back(native_);
}

} // namespace coaccel::cuda

#endif
