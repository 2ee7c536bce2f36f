#include "core/option_check.hpp"

#include <coaccel/serve/rate_limiter_options.hpp>

#include <string>
#include <string_view>

namespace coaccel::serve {
namespace {

constexpr std::uint64_t most_tokens = 1'000'000'000'000;

error_code check_limit(std::string_view tenant, const rate_limit& l) noexcept
{
    const auto ec = detail::check_options({
        {l.rate >= 1 && l.rate <= most_tokens, "rate", l.rate, "it must be from 1 to 10^12"},
        {l.period.count() >= 1 && l.period <= std::chrono::hours(24), "period", l.period,
         "it must be above zero and at most a day"},
        {l.burst >= 1 && l.burst <= most_tokens, "burst", l.burst, "it must be from 1 to 10^12"},
    });
    if (!ec)
        return ec;
    try {
        return make_error_with_message(errc::invalid_option, "tenant " + std::string(tenant) + ": " + ec.message());
    } catch (...) {
        return errc::invalid_option;
    }
}

} // namespace

error_code rate_limiter_options::check() const noexcept
{
    if (auto ec = detail::check_options({{max_tenants >= 1, "max_tenants", max_tenants, "it must be at least 1"}}))
        return ec;
    if (auto ec = check_limit("others", others))
        return ec;
    for (const auto& [name, l] : tenants) {
        if (auto ec = check_limit(name, l))
            return ec;
        if (name.empty())
            return detail::option_error("tenants has an empty name");
    }
    return {};
}

} // namespace coaccel::serve
