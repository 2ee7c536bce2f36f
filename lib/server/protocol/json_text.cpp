#include "server/protocol/json_text.hpp"

#include "telemetry/json_writer.hpp"

#include <algorithm>
#include <charconv>

namespace coaccel::server {

void append_json_text(std::string& out, std::string_view text)
{
    const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
    if (!plain)
        return detail::json_writer(out).text(text);
    out += '"';
    out += text;
    out += '"';
}

void append_integer_text(std::string& out, std::uint64_t value)
{
    char text[20];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

} // namespace coaccel::server
