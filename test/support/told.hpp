#ifndef COACCEL_TEST_SUPPORT_TOLD_HPP
#define COACCEL_TEST_SUPPORT_TOLD_HPP

#include <coaccel/core/backend.hpp>

#include <condition_variable>
#include <mutex>

namespace test {

/// Counts notifications, and lets a test wait for one.
class told {
public:
    coaccel::notification call()
    {
        return {[](void* self) noexcept { static_cast<told*>(self)->add(); }, this};
    }

    void add() noexcept
    {
        const std::scoped_lock lock(mutex_);
        ++count_;
        // Under the lock, because the waiting thread may destroy this object right after it.
        changed_.notify_all();
    }

    void wait_for(int n)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return count_ >= n; });
    }

    int count() const
    {
        const std::scoped_lock lock(mutex_);
        return count_;
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

} // namespace test

#endif
