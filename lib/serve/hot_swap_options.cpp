#include "core/option_check.hpp"

#include <coaccel/serve/hot_swap_options.hpp>

#include <boost/asio/error.hpp>

namespace coaccel::serve {

bool is_version_failure(const error_code& ec) noexcept
{
    if (!ec || ec == boost::asio::error::operation_aborted)
        return false;
    // Not all of fault::caller: for the version's own mistakes, such as an op that its device does not have or a
    // function that throws, its client can do nothing.
    switch (errc_of(ec)) {
    case errc::invalid_argument:
    case errc::size_overflow:
    case errc::leading_dimension:
    case errc::out_of_bounds:
    case errc::wrong_device:
    case errc::released_ref:
    case errc::wrong_dtype:
    case errc::overlap:
    case errc::length_mismatch:
    case errc::queue_full: return false;
    default: return true;
    }
}

std::string_view to_string(swap_change change) noexcept
{
    switch (change) {
    case swap_change::switched: return "switched";
    case swap_change::load_failed: return "load_failed";
    case swap_change::confirmed: return "confirmed";
    case swap_change::rolled_back: return "rolled_back";
    case swap_change::closed: return "closed";
    }
    return "unknown";
}

std::string_view to_string(version_state state) noexcept
{
    switch (state) {
    case version_state::waiting: return "waiting";
    case version_state::loading: return "loading";
    case version_state::warming_up: return "warming_up";
    case version_state::current: return "current";
    case version_state::previous: return "previous";
    case version_state::draining: return "draining";
    case version_state::closing: return "closing";
    case version_state::closed: return "closed";
    }
    return "unknown";
}

error_code hot_swap_options::check() const noexcept
{
    const auto& r = rollback;
    constexpr std::uint32_t most = 1'000'000;
    return detail::check_options({
        {load_limit.count() >= 0, "load_limit", load_limit, detail::not_negative},
        {warm_up_limit.count() >= 0, "warm_up_limit", warm_up_limit, detail::not_negative},
        {drain_limit.count() >= 0, "drain_limit", drain_limit, detail::not_negative},
        {confirm_after.count() >= 0, "confirm_after", confirm_after, detail::not_negative},
        // Written so that NaN is refused.
        {r.max_failure_share >= 0 && r.max_failure_share <= 1, "rollback.max_failure_share", r.max_failure_share,
         "it must be from 0 to 1"},
        {r.max_requests >= 1 && r.max_requests <= most, "rollback.max_requests", r.max_requests,
         "it must be from 1 to 1000000"},
        {r.min_requests >= 1 && r.min_requests <= r.max_requests, "rollback.min_requests", r.min_requests,
         "it must be from 1 to rollback.max_requests"},
        {r.window.count() >= 0, "rollback.window", r.window, detail::not_negative},
    });
}

} // namespace coaccel::serve
