#ifndef COACCEL_SERVE_ROLLBACK_RULE_HPP
#define COACCEL_SERVE_ROLLBACK_RULE_HPP

#include <coaccel/serve/hot_swap_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace coaccel::detail {

/// Decides by the outcomes of its requests whether a version must be rolled back. Has no clock.
class rollback_rule {
public:
    using time_point = std::chrono::steady_clock::time_point;

    explicit rollback_rule(const serve::rollback_options& o)
        : max_share_(o.max_failure_share), least_(o.min_requests), most_(o.max_requests), window_(o.window)
    {}

    bool enabled() const noexcept { return max_share_ < 1; }

    /// Allocates the memory for restart(). Exceptions: std::bad_alloc.
    void reserve()
    {
        if (enabled())
            ring_.reserve(most_);
    }

    /// Watches another version. Preconditions: reserve() has been called; otherwise this allocates memory.
    void restart()
    {
        if (enabled())
            ring_.resize(most_);
        first_ = 0;
        count_ = 0;
        failures_ = 0;
    }

    /// A request has ended. True: the version must be rolled back. Times must not decrease by more than the threads of
    /// the callers disorder them; an outcome that arrives late counts from its own time.
    bool add(bool failed, time_point now) noexcept
    {
        if (!enabled() || ring_.empty())
            return false;
        while (count_ > 0 && window_.count() > 0 && now - ring_[first_].at >= window_)
            drop_oldest();
        if (count_ == ring_.size())
            drop_oldest();
        ring_[(first_ + count_) % ring_.size()] = {now, failed};
        ++count_;
        failures_ += failed;
        return count_ >= least_ && static_cast<double>(failures_) > max_share_ * static_cast<double>(count_);
    }

    std::size_t requests() const noexcept { return count_; }
    std::size_t failures() const noexcept { return failures_; }

private:
    struct outcome {
        time_point at{};
        bool failed = false;
    };

    void drop_oldest() noexcept
    {
        failures_ -= ring_[first_].failed;
        first_ = (first_ + 1) % ring_.size();
        --count_;
    }

    const double max_share_;
    const std::size_t least_;
    const std::size_t most_;
    const std::chrono::nanoseconds window_;
    /// The outcomes within the window, oldest first.
    std::vector<outcome> ring_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::size_t failures_ = 0;
};

} // namespace coaccel::detail

#endif
