#include "server/config/config_error.hpp"

#include "core/escape_text.hpp"

#include <string_view>

namespace coaccel::server {
namespace {

std::string shortened(std::string_view text)
{
    constexpr std::size_t most = 120;
    if (text.size() <= most)
        return detail::escape_text(text);
    const auto kept = text.substr(0, most);
    return detail::escape_text(kept.substr(0, detail::whole_characters(kept))) + "…";
}

} // namespace

std::string config_error::text() const
{
    std::string all = shortened(where);
    if (line != 0)
        all += ':' + std::to_string(line);
    all += ": ";
    if (!what.empty())
        all += shortened(what) + ": ";
    return all + detail::escape_text(message);
}

} // namespace coaccel::server
