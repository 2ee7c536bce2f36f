#include "telemetry/json_writer.hpp"

#include "telemetry/number_text.hpp"
#include "telemetry/utf8_text.hpp"

#include <cmath>

namespace coaccel::detail {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

} // namespace

void json_writer::separate()
{
    if (follows_)
        out_ += ',';
    if (new_line_)
        out_ += '\n';
    follows_ = true;
    new_line_ = false;
}

void json_writer::open(char bracket)
{
    separate();
    out_ += bracket;
    follows_ = false;
}

void json_writer::close(char bracket)
{
    out_ += bracket;
    follows_ = true;
}

void json_writer::raw(std::string_view value)
{
    separate();
    out_ += value;
}

void json_writer::key(std::string_view name)
{
    text(name);
    out_ += ':';
    follows_ = false;
}

void json_writer::text(std::string_view value)
{
    separate();
    out_ += '"';
    for_each_character(value, [this](char32_t c, std::string_view bytes) {
        if (c == '"' || c == '\\')
            out_.append(1, '\\').append(bytes);
        else if (c == '\n')
            out_ += "\\n";
        else if (c < 0x20)
            out_.append("\\u00").append(1, hex_digits[c >> 4]).append(1, hex_digits[c & 15]);
        else
            out_ += bytes;
    });
    out_ += '"';
}

void json_writer::hexadecimal(std::initializer_list<std::uint64_t> parts)
{
    separate();
    out_ += '"';
    for (const std::uint64_t n : parts)
        for (int shift = 60; shift >= 0; shift -= 4)
            out_ += hex_digits[(n >> shift) & 15];
    out_ += '"';
}

void json_writer::integer(std::uint64_t value)
{
    raw(std::to_string(value));
}

void json_writer::microseconds(std::chrono::nanoseconds t)
{
    separate();
    std::int64_t ns = t.count();
    if (ns < 0) {
        out_ += '-';
        ns = -ns;
    }
    const std::string decimals = std::to_string(1000 + ns % 1000);
    out_.append(std::to_string(ns / 1000)).append(".").append(decimals, 1);
}

void json_writer::number(double value)
{
    if (!std::isfinite(value))
        return null();
    separate();
    append_number(out_, value);
}

} // namespace coaccel::detail
