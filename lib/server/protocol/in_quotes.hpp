#ifndef COACCEL_SERVER_PROTOCOL_IN_QUOTES_HPP
#define COACCEL_SERVER_PROTOCOL_IN_QUOTES_HPP

#include "core/escape_text.hpp"

#include <string>
#include <string_view>

namespace coaccel::server {

/// A text of a client for a message: in quotation marks, on one line, and not too long.
inline std::string in_quotes(std::string_view text)
{
    constexpr std::size_t most = 80;
    std::string out = "\"";
    out += detail::escape_text(text.size() <= most ? text
                                                   : text.substr(0, detail::whole_characters(text.substr(0, most))));
    out += text.size() <= most ? "\"" : "...\"";
    return out;
}

} // namespace coaccel::server

#endif
