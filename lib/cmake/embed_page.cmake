# Writes a source file with the content of HTML to OUT.
file(READ ${HTML} html)
if(html MATCHES "\\)coaccel\"")
    message(FATAL_ERROR "${HTML} contains the end of the string literal")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY NEWLINE_STYLE UNIX CONTENT [[
#include "telemetry/page/page.hpp"

namespace coaccel::detail {

std::string_view live_page() noexcept
{
    return R"coaccel(@html@)coaccel";
}

} // namespace coaccel::detail
]])
