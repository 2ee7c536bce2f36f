#ifndef COACCEL_WORKER_PARENT_REPLY_ESTIMATOR_HPP
#define COACCEL_WORKER_PARENT_REPLY_ESTIMATOR_HPP

#include "context/completion/duration_estimator.hpp"
#include "context/completion/wait_policy.hpp"

namespace coaccel::worker {

/// Estimates when the reply arrives to a request that was sent while no other was in flight: no other activity then
/// hides how long the executor takes to wake up.
class COACCEL_DECL reply_estimator {
public:
    using time_point = detail::clock::time_point;

    /// Preconditions: no request is in flight, `id` is not zero, and the launch time of the request is set.
    void sent(std::uint64_t id, const detail::request& r) noexcept;

    /// The expected time has been reached, and polling for the reply begins.
    void due() noexcept { overdue_ = true; }

    /// Whether `id` is the request that was sent alone.
    bool is_about(std::uint64_t id) const noexcept { return id == alone_; }

    /// The request has ended. `looking`: the context has polled without a gap.
    void ended(time_point now, bool looking) noexcept;

    /// The expected end of the request that was sent alone; empty once it has ended.
    detail::wait_policy::expected_end next() const noexcept;

private:
    detail::duration_estimator learned_;
    std::uint64_t alone_ = 0;
    detail::duration_estimator::kind kind_ = 0;
    time_point began_{};
    bool overdue_ = false;
};

} // namespace coaccel::worker

#endif
