#include "telemetry/number_text.hpp"

#include <coaccel/telemetry/exposition.hpp>

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

} // namespace

std::string_view content_type(text_format format) noexcept
{
    return format == text_format::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8";
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
