#ifndef COACCEL_SERVER_HTTP_TRANSFER_LIMIT_HPP
#define COACCEL_SERVER_HTTP_TRANSFER_LIMIT_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace coaccel::server {

/// The deadline of the transfer of a body: it must make progress within each timeout, and all of it must be as fast as
/// a minimum rate, so that a client cannot keep a connection and its memory by sending or taking a little at a time.
class transfer_limit {
public:
    using clock = std::chrono::steady_clock;

    /// Bytes per second. The timeout is granted on top of the time that this rate takes.
    static constexpr std::uint64_t least_rate = 16 * 1024;
    /// Fewer bytes since the last progress are none.
    static constexpr std::size_t least_progress = 4096;

    void begin(clock::time_point now, std::chrono::nanoseconds timeout) noexcept
    {
        began_ = progressed_ = now;
        timeout_ = timeout;
        bytes_ = since_progress_ = 0;
    }

    /// Bytes were transferred.
    void moved(clock::time_point now, std::size_t bytes) noexcept
    {
        bytes_ += bytes;
        since_progress_ += bytes;
        if (since_progress_ < least_progress)
            return;
        since_progress_ = 0;
        progressed_ = now;
    }

    clock::time_point deadline() const noexcept
    {
        const auto earned = std::chrono::milliseconds(bytes_ * 1000 / least_rate);
        return std::min(progressed_, began_ + earned) + timeout_;
    }

private:
    clock::time_point began_{};
    clock::time_point progressed_{};
    std::chrono::nanoseconds timeout_{0};
    std::uint64_t bytes_ = 0;
    std::size_t since_progress_ = 0;
};

} // namespace coaccel::server

#endif
