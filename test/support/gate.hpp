#ifndef COACCEL_TEST_SUPPORT_GATE_HPP
#define COACCEL_TEST_SUPPORT_GATE_HPP

#include <coaccel/core/op.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>

namespace test {

/// Blocks an op, or a lane, for as long as the test wants. To block an op, pass `&gate` to async_submit through
/// gate_op.
///
/// Copies share one state, because a thread that has been let through may look at it once more after the test case has
/// ended: a device that is dropped does not wait for its ops.
class gate {
public:
    void open()
    {
        const std::scoped_lock lock(state_->mutex);
        state_->open = true;
        state_->changed.notify_all();
    }

    bool is_open() const
    {
        const std::scoped_lock lock(state_->mutex);
        return state_->open;
    }

    void arrive()
    {
        const std::scoped_lock lock(state_->mutex);
        ++state_->arrived;
        state_->changed.notify_all();
    }

    void pass()
    {
        const auto kept = state_;
        arrive();
        std::unique_lock lock(kept->mutex);
        kept->changed.wait(lock, [&] { return kept->open; });
    }

    bool reached(int n) const
    {
        const std::scoped_lock lock(state_->mutex);
        return state_->arrived >= n;
    }

    /// Waits until n ops or lanes have reached the gate.
    void wait_for(int n) const
    {
        std::unique_lock lock(state_->mutex);
        state_->changed.wait(lock, [&] { return state_->arrived >= n; });
    }

private:
    struct state {
        std::mutex mutex;
        std::condition_variable changed;
        int arrived = 0;
        bool open = false;
    };

    std::shared_ptr<state> state_ = std::make_shared<state>();
};

class gate_op {
public:
    explicit gate_op(const gate* where) : where_(*where) {}

    template <class... Spans>
    void operator()(coaccel::native_stream, Spans...)
    {
        where_.pass();
    }

private:
    gate where_;
};

} // namespace test

#endif
