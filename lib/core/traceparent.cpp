#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/traceparent.hpp>

#include <algorithm>
#include <optional>

namespace coaccel {
namespace {

constexpr std::string_view operation = "parse_traceparent";
constexpr std::string_view lower_digits = "0123456789abcdef";

// "00-TRACE ID-PARENT ID-FLAGS"
constexpr std::size_t trace_id_at = 3;
constexpr std::size_t parent_id_at = trace_id_at + 32 + 1;
constexpr std::size_t flags_at = parent_id_at + 16 + 1;
constexpr std::size_t length = flags_at + 2;
constexpr std::uint8_t known_flags = 0x03;

std::optional<std::uint64_t> hexadecimal(std::string_view text) noexcept
{
    std::uint64_t n = 0;
    for (const char c : text) {
        const auto digit = lower_digits.find(c);
        if (digit == std::string_view::npos)
            return std::nullopt;
        n = (n << 4) | digit;
    }
    return n;
}

void append_byte(std::string& text, std::uint8_t byte)
{
    text += lower_digits[byte >> 4];
    text += lower_digits[byte & 15];
}

error_code bad_field(std::string_view field) noexcept
{
    return detail::op_error(errc::invalid_argument, operation, {field, " has characters other than 0-9 and a-f"});
}

} // namespace

result<traceparent> parse_traceparent(std::string_view text)
{
    if (text.size() < length)
        return detail::op_error(errc::invalid_argument, operation,
                                {"the text has ", text.size(), " characters, must have ", length});
    for (const std::size_t at : {trace_id_at - 1, parent_id_at - 1, flags_at - 1})
        if (text[at] != '-')
            return detail::op_error(errc::invalid_argument, operation, {"character ", at, " is not '-'"});
    const auto version = hexadecimal(text.substr(0, 2));
    if (!version)
        return bad_field("the version");
    if (*version == 0xff)
        return detail::op_error(errc::invalid_argument, operation, {"the version is ff, which is reserved"});
    if (*version == 0 && text.size() != length)
        return detail::op_error(errc::invalid_argument, operation,
                                {"the text has ", text.size(), " characters, must have ", length, " in version 00"});
    if (text.size() > length && text[length] != '-')
        return detail::op_error(errc::invalid_argument, operation, {"character ", length, " is not '-'"});
    traceparent t;
    for (std::size_t i = 0; i < t.trace_id.size(); ++i) {
        const auto byte = hexadecimal(text.substr(trace_id_at + 2 * i, 2));
        if (!byte)
            return bad_field("the trace id");
        t.trace_id[i] = static_cast<std::uint8_t>(*byte);
    }
    const auto parent = hexadecimal(text.substr(parent_id_at, 16));
    if (!parent)
        return bad_field("the parent id");
    const auto flags = hexadecimal(text.substr(flags_at, 2));
    if (!flags)
        return bad_field("the flags");
    if (std::ranges::all_of(t.trace_id, [](std::uint8_t b) { return b == 0; }))
        return detail::op_error(errc::invalid_argument, operation, {"the trace id is zero"});
    if (*parent == 0)
        return detail::op_error(errc::invalid_argument, operation, {"the parent id is zero"});
    t.parent_id = *parent;
    t.flags = static_cast<std::uint8_t>(*flags & known_flags);
    return t;
}

std::string to_string(const traceparent& t)
{
    std::string text = "00-";
    text.reserve(length);
    for (const std::uint8_t b : t.trace_id)
        append_byte(text, b);
    text += '-';
    for (int shift = 56; shift >= 0; shift -= 8)
        append_byte(text, static_cast<std::uint8_t>(t.parent_id >> shift));
    text += '-';
    append_byte(text, t.flags & known_flags);
    return text;
}

} // namespace coaccel
