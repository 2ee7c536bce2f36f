#include "worker/parent/reply_estimator.hpp"

namespace coaccel::worker {

void reply_estimator::sent(std::uint64_t id, const detail::request& r) noexcept
{
    alone_ = id;
    kind_ = detail::duration_estimator::kind_of(r);
    began_ = r.launched;
    overdue_ = false;
}

void reply_estimator::ended(time_point now, bool looking) noexcept
{
    alone_ = 0;
    learned_.learn(kind_, now - began_, looking, overdue_);
}

detail::wait_policy::expected_end reply_estimator::next() const noexcept
{
    if (alone_ == 0)
        return {};
    const auto estimate = learned_.of(kind_);
    if (estimate.expected.count() == 0)
        return {};
    return {began_ + estimate.expected, estimate.expected, estimate.reliable};
}

} // namespace coaccel::worker
