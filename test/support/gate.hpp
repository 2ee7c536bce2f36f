#ifndef COACCEL_TEST_SUPPORT_GATE_HPP
#define COACCEL_TEST_SUPPORT_GATE_HPP

#include <coaccel/core/op.hpp>

#include <condition_variable>
#include <mutex>

namespace test {

/// Blocks an op for as long as the test wants: pass `&gate` to async_submit through gate_op.
class gate {
public:
    void open()
    {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

    void pass()
    {
        std::unique_lock lock(mutex_);
        ++arrived_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
    }

    bool reached(int n)
    {
        const std::scoped_lock lock(mutex_);
        return arrived_ >= n;
    }

    /// Waits until n ops have reached the gate.
    void wait_for(int n)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return arrived_ >= n; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int arrived_ = 0;
    bool open_ = false;
};

struct gate_op {
    gate* where;

    template <class... Spans>
    void operator()(coaccel::native_stream, Spans...) const
    {
        where->pass();
    }
};

} // namespace test

#endif
