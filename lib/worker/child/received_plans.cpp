#include "worker/child/received_plans.hpp"

namespace coaccel::worker {

bool received_plans::add(const plan_frame& frame, const plan_environment& here)
{
    auto found = slots_.find(frame.number);
    if (found == slots_.end()) {
        if (frame.total > limits_.bytes_each || frame.total > limits_.bytes - bytes_ || slots_.size() >= limits_.plans)
            return false;
        found = slots_.emplace(frame.number, slot()).first;
        found->second.total = frame.total;
        bytes_ += frame.total;
    }
    slot& s = found->second;
    // An empty part would never complete a plan, and a parent sends none.
    if (s.complete || frame.part.empty() || frame.total != s.total || frame.offset != s.bytes.size() ||
        frame.part.size() > s.total - s.bytes.size())
        return false;
    s.bytes.insert(s.bytes.end(), frame.part.begin(), frame.part.end());
    if (s.bytes.size() < s.total)
        return true;
    s.complete = true;
    decoded_plan made = decode_plan(s.bytes, here);
    s.bytes = {};
    if (made.status == plan_status::malformed)
        return false;
    if (made.status == plan_status::complete) {
        s.plan = std::make_shared<const detail::plan_data>(std::move(made.plan));
        return true;
    }
    s.problem = errc_of(made.why) != errc{} ? errc_of(made.why) : errc::backend_error;
    s.message = made.why.message();
    return true;
}

bool received_plans::remove(std::uint64_t number) noexcept
{
    const auto found = slots_.find(number);
    if (found == slots_.end())
        return false;
    bytes_ -= found->second.total;
    slots_.erase(found);
    return true;
}

const received_plans::entry* received_plans::find(std::uint64_t number) const noexcept
{
    const auto found = slots_.find(number);
    return found == slots_.end() || !found->second.complete ? nullptr : &found->second;
}

} // namespace coaccel::worker
