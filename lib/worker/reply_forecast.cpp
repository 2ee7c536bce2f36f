#include "worker/reply_forecast.hpp"

namespace coaccel::worker {

void reply_forecast::sent(std::uint64_t id, const detail::request& r) noexcept
{
    alone_ = id;
    kind_ = detail::end_forecast::kind_of(r);
    began_ = r.launched;
    overdue_ = false;
}

void reply_forecast::ended(time_point now, bool looking) noexcept
{
    alone_ = 0;
    learned_.learn(kind_, now - began_, looking, overdue_);
}

detail::completion_rule::forecast reply_forecast::next() const noexcept
{
    if (alone_ == 0)
        return {};
    const auto outlook = learned_.of(kind_);
    if (outlook.expected.count() == 0)
        return {};
    return {began_ + outlook.expected, outlook.expected, outlook.reliable};
}

} // namespace coaccel::worker
