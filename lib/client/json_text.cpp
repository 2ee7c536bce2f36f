#include "client/json_text.hpp"

#include "core/escape_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace coaccel::client {
namespace {

namespace json = boost::json;

bool is_plain(const json::value& v)
{
    return !v.is_object() && !v.is_array();
}

void append_indented(std::string& out, const json::value& v, std::size_t depth)
{
    const std::string next_line = "\n" + std::string(2 * (depth + 1), ' ');
    if (v.is_object() && !v.get_object().empty()) {
        std::string_view between = "{";
        for (const auto& [key, value] : v.get_object()) {
            out += between;
            out += next_line + json::serialize(json::string_view(key)) + ": ";
            append_indented(out, value, depth + 1);
            between = ",";
        }
        out += "\n" + std::string(2 * depth, ' ') + "}";
    } else if (v.is_array() && !std::ranges::all_of(v.get_array(), is_plain)) {
        std::string_view between = "[";
        for (const auto& value : v.get_array()) {
            out += between;
            out += next_line;
            append_indented(out, value, depth + 1);
            between = ",";
        }
        out += "\n" + std::string(2 * depth, ' ') + "]";
    } else
        out += json::serialize(v);
}

} // namespace

std::string indented_json(std::string_view document)
{
    boost::system::error_code ec;
    const auto v = json::parse(document, ec);
    if (ec)
        return detail::escape_text(document);
    std::string out;
    append_indented(out, v, 0);
    return out;
}

std::string error_message(std::string_view document)
{
    boost::system::error_code ec;
    const auto v = json::parse(document, ec);
    if (!ec && v.is_object())
        if (const auto* error = v.get_object().if_contains("error"); error && error->is_string())
            return detail::escape_text(std::string_view(error->get_string()));
    return detail::escape_text(document.substr(0, 300));
}

} // namespace coaccel::client
