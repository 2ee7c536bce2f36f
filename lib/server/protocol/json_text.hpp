#ifndef COACCEL_SERVER_PROTOCOL_JSON_TEXT_HPP
#define COACCEL_SERVER_PROTOCOL_JSON_TEXT_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace coaccel::server {

/// Appends a JSON string with its quotation marks. Bytes that are not UTF-8 become U+FFFD.
void append_json_text(std::string& out, std::string_view text);

void append_integer_text(std::string& out, std::uint64_t value);

} // namespace coaccel::server

#endif
