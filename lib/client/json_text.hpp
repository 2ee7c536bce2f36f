#ifndef COACCEL_CLIENT_JSON_TEXT_HPP
#define COACCEL_CLIENT_JSON_TEXT_HPP

#include <string>
#include <string_view>

namespace coaccel::client {

/// A JSON document with a line for each member of an object, for people; lists of plain values stay on one line. A text
/// that is no JSON is returned as one line without control characters.
std::string indented_json(std::string_view document);

/// The member `error` of a reply; without one the reply itself, shortened, as one line.
std::string error_message(std::string_view document);

} // namespace coaccel::client

#endif
