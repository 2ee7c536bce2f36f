#include "core/option_check.hpp"

#include <coaccel/serve/fair_share_options.hpp>

#include <string>
#include <string_view>

namespace coaccel::serve {
namespace {

constexpr double most_guaranteed = 0.9;

error_code check_tenant(const tenant_options& t) noexcept
{
    return detail::check_options({
        {t.weight >= 1 && t.weight <= 1'000'000, "weight", t.weight, "it must be from 1 to 1000000"},
        {t.burst.count() >= 0 && t.burst <= std::chrono::hours(24), "burst", t.burst, "it must be from 0 to a day"},
        // Written so that NaN is refused.
        {t.minimum_share >= 0 && t.minimum_share <= most_guaranteed, "minimum_share", t.minimum_share,
         "it must be from 0 to 0.9"},
        {t.max_queued >= 1, "max_queued", t.max_queued, "it must be at least 1"},
        {t.max_running >= 1, "max_running", t.max_running, "it must be at least 1"},
        {t.estimate.count() > 0 && t.estimate <= std::chrono::hours(1), "estimate", t.estimate,
         "it must be above zero and at most an hour"},
    });
}

/// The same error with the name of the tenant.
error_code of_tenant(std::string_view name, const error_code& ec) noexcept
{
    try {
        return make_error_with_message(errc::invalid_option, "tenant " + std::string(name) + ": " + ec.message());
    } catch (...) {
        return errc::invalid_option;
    }
}

} // namespace

error_code fair_share_options::check() const noexcept
{
    if (auto ec = detail::check_options({
            {max_tenants >= 1, "max_tenants", max_tenants, "it must be at least 1"},
            {max_running >= 1, "max_running", max_running, "it must be at least 1"},
            {max_queued >= 1, "max_queued", max_queued, "it must be at least 1"},
            {!(others.minimum_share > 0), "others.minimum_share", others.minimum_share,
             "it must be 0: any number of tenants could demand it"},
        }))
        return ec;
    if (auto ec = check_tenant(others))
        return of_tenant("others", ec);
    double guaranteed = 0;
    for (const auto& [name, t] : tenants) {
        if (auto ec = check_tenant(t))
            return of_tenant(name, ec);
        if (name.empty())
            return detail::option_error("tenants has an empty name");
        guaranteed += t.minimum_share;
    }
    // The sum of decimal fractions is rarely exact.
    return detail::check_options(
        {{guaranteed <= most_guaranteed + 1e-9, "the sum of minimum_share", guaranteed, "it must be at most 0.9"}});
}

} // namespace coaccel::serve
