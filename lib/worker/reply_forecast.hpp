#ifndef COACCEL_WORKER_REPLY_FORECAST_HPP
#define COACCEL_WORKER_REPLY_FORECAST_HPP

#include "context/completion_rule.hpp"
#include "context/end_forecast.hpp"

namespace coaccel::worker {

/// Says when the reply to a request will come that was sent when no other was under way: nothing else goes on that
/// could hide how long the executor takes to wake up.
class COACCEL_DECL reply_forecast {
public:
    using time_point = detail::clock::time_point;

    /// Preconditions: nothing is under way, `id` is not zero, and the request knows when it was launched.
    void sent(std::uint64_t id, const detail::request& r) noexcept;

    /// Somebody looks for replies, because the time has come.
    void due() noexcept { overdue_ = true; }

    /// Whether it is the one that was alone.
    bool is_about(std::uint64_t id) const noexcept { return id == alone_; }

    /// It has ended. `looking`: somebody has been looking all the time.
    void ended(time_point now, bool looking) noexcept;

    /// Of the request that was alone; empty when it has ended.
    detail::completion_rule::forecast next() const noexcept;

private:
    detail::end_forecast learned_;
    std::uint64_t alone_ = 0;
    detail::end_forecast::kind kind_ = 0;
    time_point began_{};
    bool overdue_ = false;
};

} // namespace coaccel::worker

#endif
