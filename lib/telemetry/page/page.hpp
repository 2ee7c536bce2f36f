#ifndef COACCEL_TELEMETRY_PAGE_PAGE_HPP
#define COACCEL_TELEMETRY_PAGE_PAGE_HPP

#include <string_view>

namespace coaccel::detail {

/// The HTML of the live page, from page/page.html.
std::string_view live_page() noexcept;

} // namespace coaccel::detail

#endif
