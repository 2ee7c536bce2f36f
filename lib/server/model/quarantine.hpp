#ifndef COACCEL_SERVER_MODEL_QUARANTINE_HPP
#define COACCEL_SERVER_MODEL_QUARANTINE_HPP

#include <atomic>
#include <chrono>
#include <cstdint>

namespace coaccel::server {

/// Whether a version may get requests after its plans were quarantined, because too many runs have ended the context of
/// their device. After a pause it is tried again. Has no clock. Thread safety: any thread.
class quarantine {
public:
    using time_point = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::nanoseconds pause = std::chrono::minutes(1);

    /// What to do with a request.
    enum class verdict : std::uint8_t {
        run,    ///< Run it.
        refuse, ///< Refuse it.
        revive, ///< Revive the plans, then run it. For one request after each pause.
    };

    /// A request has ended with errc::plan_quarantined.
    void begin(time_point now) noexcept
    {
        std::int64_t none = free;
        since_.compare_exchange_strong(none, now.time_since_epoch().count(), std::memory_order_relaxed);
    }

    /// False: judge() says verdict::run at any time.
    bool active() const noexcept { return since_.load(std::memory_order_relaxed) != free; }

    verdict judge(time_point now) noexcept
    {
        auto since = since_.load(std::memory_order_relaxed);
        if (since == free)
            return verdict::run;
        if (now.time_since_epoch() - time_point::duration(since) < pause)
            return verdict::refuse;
        return since_.compare_exchange_strong(since, free, std::memory_order_relaxed) ? verdict::revive : verdict::run;
    }

private:
    static constexpr std::int64_t free = INT64_MIN;

    std::atomic<std::int64_t> since_{free};
};

} // namespace coaccel::server

#endif
