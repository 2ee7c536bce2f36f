#include "telemetry/metric_names.hpp"

#include "core/escape_text.hpp"
#include "telemetry/utf8_text.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace coaccel::detail {
namespace {

using telemetry::metric_type;

// Not std::isalpha, which depends on the locale.
bool is_letter(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) noexcept
{
    return c >= '0' && c <= '9';
}

/// The position of the first character that is not permitted, or npos.
std::size_t first_bad(std::string_view name, bool colons) noexcept
{
    for (std::size_t i = 0; i < name.size(); ++i)
        if (!is_letter(name[i]) && !(i > 0 && is_digit(name[i])) && !(colons && name[i] == ':'))
            return i;
    return std::string_view::npos;
}

error_code bad_character(std::string_view what, std::string_view name, std::size_t at)
{
    return op_error(errc::invalid_argument, "telemetry",
                    {what, " \"", escape_text(name), "\" has the character '", escape_text(name.substr(at, 1)),
                     "' at position ", at});
}

/// The names of the lines of a family, and its own.
std::vector<std::string> lines_of(metric_type type, std::string_view name)
{
    const std::string n(name);
    switch (type) {
    case metric_type::counter: {
        // OpenMetrics calls the family by the name without the suffix.
        const std::string base = n.substr(0, n.size() - std::string_view("_total").size());
        return {n, base, base + "_created"};
    }
    case metric_type::gauge: return {n};
    case metric_type::histogram: return {n, n + "_bucket", n + "_sum", n + "_count", n + "_created"};
    case metric_type::summary: return {n, n + "_sum", n + "_count", n + "_created"};
    }
    return {n};
}

} // namespace

error_code check_metric_name(metric_type type, std::string_view name)
{
    if (name.empty())
        return op_error(errc::invalid_argument, "telemetry", {"the name of a metric is empty"});
    if (const auto at = first_bad(name, true); at != std::string_view::npos)
        return bad_character("the metric name", name, at);
    const bool has_suffix = name.ends_with("_total");
    if (type == metric_type::counter && (!has_suffix || name == "_total"))
        return op_error(errc::invalid_argument, "telemetry",
                        {"the counter \"", name, "\" must have a name that ends with \"_total\""});
    if (type != metric_type::counter && has_suffix)
        return op_error(
            errc::invalid_argument, "telemetry",
            {"the ", to_string(type), " \"", name, "\" has a name that ends with \"_total\", as only counters may"});
    return {};
}

error_code check_labels(metric_type type, std::string_view metric, const telemetry::labels& with)
{
    std::set<std::string_view> seen;
    for (const auto& l : with) {
        if (l.name.empty())
            return op_error(errc::invalid_argument, "telemetry", {"a label of \"", metric, "\" has an empty name"});
        if (const auto at = first_bad(l.name, false); at != std::string_view::npos)
            return bad_character("the label name", l.name, at);
        if (l.name.starts_with("__"))
            return op_error(errc::invalid_argument, "telemetry",
                            {"the label \"", l.name, "\" of \"", metric, "\" begins with \"__\", which is reserved"});
        if ((type == metric_type::histogram && l.name == "le") ||
            (type == metric_type::summary && l.name == "quantile"))
            return op_error(errc::invalid_argument, "telemetry",
                            {"the label \"", l.name, "\" is reserved in the ", to_string(type), " \"", metric, "\""});
        if (!seen.insert(l.name).second)
            return op_error(errc::invalid_argument, "telemetry",
                            {"the label \"", l.name, "\" of \"", metric, "\" is given twice"});
    }
    return {};
}

std::string clean_text(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for_each_character(text, [&out](char32_t c, std::string_view bytes) {
        const bool control = (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
        out += control ? replacement_character : bytes;
    });
    return out;
}

std::string label_key(const telemetry::labels& with)
{
    std::vector<const telemetry::label*> sorted;
    for (const auto& l : with)
        sorted.push_back(&l);
    std::ranges::sort(sorted, {}, [](const telemetry::label* l) -> const std::string& { return l->name; });
    std::string key;
    // Cleaned text has no zero bytes.
    for (const auto* l : sorted)
        key.append(l->name).append(1, '\0').append(l->value).append(1, '\0');
    return key;
}

error_code metric_names::claim(metric_type type, std::string_view name, std::string_view help)
{
    if (const auto known = families_.find(name); known != families_.end()) {
        if (known->second.type != type)
            return op_error(errc::invalid_argument, "telemetry",
                            {"\"", name, "\" is a ", to_string(known->second.type), ", not a ", to_string(type)});
        if (known->second.help != help)
            return op_error(errc::invalid_argument, "telemetry",
                            {"\"", name, "\" has the help \"", known->second.help, "\", not \"", help, "\""});
        return {};
    }
    if (const error_code ec = check_metric_name(type, name))
        return ec;
    const auto lines = lines_of(type, name);
    for (const auto& line : lines)
        if (const auto used = lines_.find(line); used != lines_.end())
            return op_error(errc::invalid_argument, "telemetry",
                            {"the ", to_string(type), " \"", name, "\" and \"", used->second, "\" both use the name \"",
                             line, "\""});
    families_.emplace(name, use{type, std::string(help)});
    for (const auto& line : lines)
        lines_.emplace(line, name);
    return {};
}

} // namespace coaccel::detail
