#include "device/standby_slot.hpp"

namespace coaccel::detail {

bool standby_slot::due(time_point now, bool has_plans) const noexcept
{
    return now >= next_look(has_plans);
}

standby_slot::time_point standby_slot::next_look(bool has_plans) const noexcept
{
    const bool may_begin = enabled_ && empty() && (has_plans || used_);
    return may_begin ? not_before_ : time_point::max();
}

void standby_slot::begin(time_point now) noexcept
{
    state_ = state::creating;
    used_ = true;
    not_before_ = now + pause;
}

void standby_slot::failed() noexcept
{
    left();
    not_before_ = time_point::max();
}

void standby_slot::left() noexcept
{
    state_ = state::empty;
    wanted_ = false;
}

void standby_slot::renewed() noexcept
{
    not_before_ = {};
}

} // namespace coaccel::detail
