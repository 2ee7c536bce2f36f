#ifndef COACCEL_DEVICE_POISON_COUNT_HPP
#define COACCEL_DEVICE_POISON_COUNT_HPP

#include <chrono>
#include <cstddef>
#include <deque>

namespace coaccel::detail {

/// How many runs of a plan have ended a context within the last minute. Has no clock.
class poison_count {
public:
    using time_point = std::chrono::steady_clock::time_point;

    static constexpr auto window = std::chrono::minutes(1);

    explicit poison_count(int limit) : limit_(static_cast<std::size_t>(limit)) {}

    /// Another run has. Returns whether these are more than the limit.
    bool add(time_point now)
    {
        while (!times_.empty() && now - times_.front() >= window)
            times_.pop_front();
        times_.push_back(now);
        return times_.size() > limit_;
    }

    void reset() noexcept { times_.clear(); }

private:
    std::size_t limit_;
    std::deque<time_point> times_;
};

} // namespace coaccel::detail

#endif
