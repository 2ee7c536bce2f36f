#include "telemetry/json_writer.hpp"

#include "telemetry/metric_names.hpp"
#include "telemetry/number_text.hpp"

#include <cmath>

namespace coaccel::detail {

void json_writer::separate()
{
    if (follows_)
        out_ += ',';
    follows_ = true;
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
    for (const char c : clean_text(value)) {
        switch (c) {
        case '\n': out_ += "\\n"; break;
        case '\t': out_ += "\\t"; break;
        case '"': out_ += "\\\""; break;
        case '\\': out_ += "\\\\"; break;
        default: out_ += c;
        }
    }
    out_ += '"';
}

void json_writer::number(double value)
{
    if (!std::isfinite(value))
        return null();
    separate();
    append_number(out_, value);
}

} // namespace coaccel::detail
