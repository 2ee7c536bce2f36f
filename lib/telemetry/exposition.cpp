#include "telemetry/number_text.hpp"

#include <coaccel/telemetry/exposition.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace coaccel::telemetry {
namespace {

void append_value(std::string& out, double value)
{
    if (std::isnan(value))
        out += "NaN";
    else if (std::isinf(value))
        out += value > 0 ? "+Inf" : "-Inf";
    else
        detail::append_number(out, value);
}

enum class quotes : std::uint8_t { keep, escape };

void append_escaped(std::string& out, std::string_view text, quotes how)
{
    for (const char c : text) {
        if (c == '\n')
            out += "\\n";
        else if (c == '\\' || (c == '"' && how == quotes::escape))
            out.append(1, '\\').append(1, c);
        else
            out += c;
    }
}

/// One metric family as text.
class family_text {
public:
    family_text(std::string& out, const metric_family& family, text_format format)
        : out_(out), family_(family), format_(format), base_(family.name)
    {
        if (format == text_format::openmetrics && family.type == metric_type::counter)
            base_.remove_suffix(std::string_view("_total").size());
    }

    void write()
    {
        header();
        for (const sample& s : family_.samples) {
            if (const auto* number = std::get_if<double>(&s.value))
                line(family_.name, s.labels, {}, {}, *number);
            else if (const auto* h = std::get_if<histogram_snapshot>(&s.value))
                histogram_lines(s.labels, *h);
            else
                summary_lines(s.labels, std::get<summary_snapshot>(s.value));
        }
    }

private:
    // The order of the OpenMetrics specification; Prometheus accepts any.
    void header()
    {
        const bool open = format_ == text_format::openmetrics;
        if (open) {
            type_line();
            for (const std::string_view unit : {"seconds", "bytes"})
                if (base_.size() > unit.size() && base_.ends_with(unit) && base_[base_.size() - unit.size() - 1] == '_')
                    out_.append("# UNIT ").append(base_).append(" ").append(unit).append("\n");
        }
        out_.append("# HELP ").append(base_).append(" ");
        append_escaped(out_, family_.help, open ? quotes::escape : quotes::keep);
        out_ += '\n';
        if (!open)
            type_line();
    }

    void type_line() { out_.append("# TYPE ").append(base_).append(" ").append(to_string(family_.type)).append("\n"); }

    void histogram_lines(const labels& with, const histogram_snapshot& h)
    {
        const std::string bucket = family_.name + "_bucket";
        for (const double bound : h.bounds)
            line(bucket, with, "le", bound, static_cast<double>(h.count_up_to(bound)));
        line(bucket, with, "le", std::numeric_limits<double>::infinity(), static_cast<double>(h.count));
        line(family_.name + "_sum", with, {}, {}, h.sum);
        line(family_.name + "_count", with, {}, {}, static_cast<double>(h.count));
    }

    void summary_lines(const labels& with, const summary_snapshot& s)
    {
        for (const auto& quantile : s.quantiles)
            line(family_.name, with, "quantile", quantile.q, quantile.value);
        line(family_.name + "_sum", with, {}, {}, s.sum);
        line(family_.name + "_count", with, {}, {}, static_cast<double>(s.count));
    }

    void line(std::string_view name, const labels& with, std::string_view extra, std::optional<double> extra_value,
              double value)
    {
        out_ += name;
        char before = '{';
        for (const label& l : with) {
            out_.append(1, before).append(l.name).append("=\"");
            append_escaped(out_, l.value, quotes::escape);
            out_ += '"';
            before = ',';
        }
        if (extra_value) {
            out_.append(1, before).append(extra).append("=\"");
            append_bound(*extra_value);
            out_ += '"';
            before = ',';
        }
        if (before == ',')
            out_ += '}';
        out_ += ' ';
        append_value(out_, value);
        out_ += '\n';
    }

    /// OpenMetrics wants the bounds of buckets as floating-point numbers, and servers compare them as texts.
    void append_bound(double bound)
    {
        const std::size_t begin = out_.size();
        append_value(out_, bound);
        if (format_ == text_format::openmetrics && std::isfinite(bound) &&
            out_.find_first_of(".e", begin) == std::string::npos)
            out_ += ".0";
    }

    std::string& out_;
    const metric_family& family_;
    const text_format format_;
    /// The name of the family in the header.
    std::string_view base_;
};

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

/// Takes the text before the next separator off the front.
std::string_view next_part(std::string_view& rest, char separator) noexcept
{
    const auto end = rest.find(separator);
    const auto part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return trim(part);
}

struct media_range {
    std::string_view type;
    double quality = 1;
    bool known_version = true;
};

media_range parse_range(std::string_view text) noexcept
{
    media_range range;
    range.type = next_part(text, ';');
    while (!text.empty()) {
        auto parameter = next_part(text, ';');
        const auto name = next_part(parameter, '=');
        const auto value = trim(parameter);
        if (equal_ignoring_case(name, "q"))
            std::from_chars(value.data(), value.data() + value.size(), range.quality);
        else if (equal_ignoring_case(name, "version"))
            range.known_version = value == "1.0.0" || value == "0.0.1";
    }
    return range;
}

} // namespace

std::string_view content_type(text_format format) noexcept
{
    return format == text_format::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8";
}

text_format choose_format(std::string_view accept) noexcept
{
    double open = 0;
    double plain = 0;
    while (!accept.empty()) {
        const media_range range = parse_range(next_part(accept, ','));
        if (equal_ignoring_case(range.type, "application/openmetrics-text")) {
            if (range.known_version)
                open = std::max(open, range.quality);
        } else if (equal_ignoring_case(range.type, "text/plain")) {
            plain = std::max(plain, range.quality);
        }
    }
    return open > 0 && open >= plain ? text_format::openmetrics : text_format::prometheus;
}

std::string to_text(const snapshot& all, text_format format)
{
    std::string out;
    for (const metric_family& family : all.families)
        family_text(out, family, format).write();
    if (format == text_format::openmetrics)
        out += "# EOF\n";
    return out;
}

} // namespace coaccel::telemetry
