#include <coaccel/telemetry/exposition.hpp>

#include <algorithm>
#include <charconv>

namespace coaccel::telemetry {
namespace {

std::string_view trim(std::string_view text) noexcept
{
    const auto from = text.find_first_not_of(" \t");
    if (from == std::string_view::npos)
        return {};
    return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept
{
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

/// Takes the text before the next separator that is not inside quotes off the front.
std::string_view next_part(std::string_view& rest, char separator) noexcept
{
    bool quoted = false;
    std::size_t end = 0;
    for (; end < rest.size() && (quoted || rest[end] != separator); ++end)
        quoted ^= rest[end] == '"';
    const auto part = rest.substr(0, end);
    rest = end == rest.size() ? std::string_view() : rest.substr(end + 1);
    return trim(part);
}

std::string_view without_quotes(std::string_view value) noexcept
{
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        return value.substr(1, value.size() - 2);
    return value;
}

/// A weight that is not valid counts as absent.
double weight(std::string_view value) noexcept
{
    double read = 1;
    // Not what only from_chars knows, such as "nan".
    if (value.empty() || value.find_first_not_of("0123456789.") != std::string_view::npos)
        return 1;
    std::from_chars(value.data(), value.data() + value.size(), read);
    return std::clamp(read, 0.0, 1.0);
}

struct media_range {
    std::string_view type;
    std::string_view version;
    double quality = 1;

    bool is(std::string_view t) const noexcept { return equal_ignoring_case(type, t); }
};

media_range parse_range(std::string_view text) noexcept
{
    media_range range;
    range.type = next_part(text, ';');
    while (!text.empty()) {
        auto parameter = next_part(text, ';');
        const auto name = next_part(parameter, '=');
        const auto value = without_quotes(trim(parameter));
        if (equal_ignoring_case(name, "q"))
            range.quality = weight(value);
        else if (equal_ignoring_case(name, "version"))
            range.version = value;
    }
    return range;
}

/// How much a client wants a format: the most specific range that includes it decides.
struct preference {
    int specific = 0;
    double quality = 0;

    void consider(int how_specific, double q) noexcept
    {
        if (how_specific > specific)
            *this = {how_specific, q};
        else if (how_specific == specific)
            quality = std::max(quality, q);
    }
};

} // namespace

text_format choose_format(std::string_view accept) noexcept
{
    preference open;
    preference plain;
    while (!accept.empty()) {
        const media_range range = parse_range(next_part(accept, ','));
        const auto has_version = [&range](std::string_view v) { return range.version.empty() || range.version == v; };
        // Clients that know only version 0.0.1 read this text too, and look only at the type in the reply.
        if (range.is("application/openmetrics-text") && (has_version("1.0.0") || has_version("0.0.1")))
            open.consider(1, range.quality);
        else if (range.is("text/plain") && has_version("0.0.4"))
            plain.consider(3, range.quality);
        else if (range.is("text/*"))
            plain.consider(2, range.quality);
        else if (range.is("*/*"))
            plain.consider(1, range.quality);
    }
    // A browser, which accepts everything, gets the format that it can show.
    return open.quality > 0 && open.quality >= plain.quality ? text_format::openmetrics : text_format::prometheus;
}

} // namespace coaccel::telemetry
