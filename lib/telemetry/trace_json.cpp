#include "posix/replaced_file.hpp"
#include "telemetry/trace_rows.hpp"

#include <coaccel/telemetry/trace_json.hpp>

#include <boost/nowide/utf/utf.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace coaccel::telemetry {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

void append_hexadecimal(std::string& out, std::uint64_t n)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        out += hex_digits[(n >> shift) & 15];
}

/// A JSON string. Bytes that are not UTF-8 become U+FFFD.
void append_string(std::string& out, std::string_view text)
{
    using utf8 = boost::nowide::utf::utf_traits<char>;
    out += '"';
    for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
        const char* next = at;
        const auto c = utf8::decode(next, end);
        if (!boost::nowide::utf::is_valid_codepoint(c)) {
            // In a malformed sequence, the byte after the first may begin another character.
            out += "\\ufffd";
            ++at;
            continue;
        }
        if (c == '"' || c == '\\') {
            out += '\\';
            out += *at;
        } else if (c < 0x20) {
            out += "\\u00";
            out += hex_digits[c >> 4];
            out += hex_digits[c & 15];
        } else {
            out.append(at, next);
        }
        at = next;
    }
    out += '"';
}

/// Nanoseconds as microseconds with three decimals.
void append_microseconds(std::string& out, std::int64_t ns)
{
    if (ns < 0) {
        out += '-';
        ns = -ns;
    }
    const std::string decimals = std::to_string(1000 + ns % 1000);
    out.append(std::to_string(ns / 1000)).append(".").append(decimals, 1);
}

/// "2026-01-31T23:59:59Z"
std::string utc_text(std::chrono::system_clock::time_point t)
{
    const std::time_t seconds = std::chrono::system_clock::to_time_t(t);
    std::tm parts{};
    std::array<char, 32> text{};
    if (!::gmtime_r(&seconds, &parts) || std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        return {};
    return text.data();
}

bool is_instant(const trace_event& e) noexcept
{
    switch (e.kind) {
    case trace_kind::fault:
    case trace_kind::conviction:
    case trace_kind::quarantine:
    case trace_kind::mark: return true;
    case trace_kind::restart: return e.duration.count() == 0;
    default: return false;
    }
}

std::string_view value_name(trace_kind kind) noexcept
{
    switch (kind) {
    case trace_kind::batch: return "requests";
    case trace_kind::run:
    case trace_kind::op:
    case trace_kind::transfer: return "bytes";
    case trace_kind::restart: return "generation";
    default: return "value";
    }
}

class trace_writer {
public:
    explicit trace_writer(const trace_snapshot& s) : all_(s)
    {
        start_ = s.start;
        for (const trace_event& e : s.events)
            if (e.kind == trace_kind::traceparent)
                parents_.insert_or_assign(e.id, &e);
            else
                add(e);
        rows_ = detail::assign_trace_rows(periods_);
        for (std::size_t i = 0; i < spans_.size(); ++i)
            if (spans_[i]->id != 0)
                by_id_.insert_or_assign(spans_[i]->id, i);
    }

    std::string write()
    {
        out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start\":";
        append_string(out_, utc_text(all_.system_start));
        out_.append(",\"events\":").append(std::to_string(all_.added));
        out_.append(",\"lost\":").append(std::to_string(all_.lost)).append("},\"traceEvents\":[");
        name_rows();
        for (std::size_t i = 0; i < spans_.size(); ++i)
            write_span(i);
        for (const trace_event* e : instants_)
            write_instant(*e);
        for (std::size_t i = 0; i < spans_.size(); ++i) {
            if (const auto* from = find_span(spans_[i]->parent))
                write_arrow(*from, i);
            if (const auto* to = find_span(spans_[i]->leads_to))
                write_arrow(i, *to);
        }
        out_ += "\n]}\n";
        return std::move(out_);
    }

private:
    void add(const trace_event& e)
    {
        start_ = std::min(start_, e.begin);
        if (is_instant(e)) {
            instants_.push_back(&e);
            return;
        }
        const auto begin = e.begin.time_since_epoch().count();
        spans_.push_back(&e);
        periods_.push_back({e.track.index, begin, begin + std::max<std::int64_t>(e.duration.count(), 0)});
    }

    void begin_event(std::string_view phase, trace_track track, std::uint32_t row)
    {
        out_.append(first_ ? "\n" : ",\n").append("{\"ph\":\"").append(phase).append("\",\"pid\":");
        out_.append(std::to_string(track.index + 1)).append(",\"tid\":").append(std::to_string(row + 1));
        first_ = false;
    }

    void name_row(std::string_view what, trace_track track, std::uint32_t row, std::string_view name)
    {
        begin_event("M", track, row);
        out_.append(",\"name\":\"").append(what).append("\",\"args\":{\"name\":");
        append_string(out_, name);
        out_ += "}}";
    }

    void name_rows()
    {
        std::set<std::pair<std::uint16_t, std::uint32_t>> used;
        for (std::size_t i = 0; i < spans_.size(); ++i)
            used.emplace(spans_[i]->track.index, rows_[i]);
        for (const trace_event* e : instants_)
            used.emplace(e->track.index, 0);
        int named = -1;
        for (const auto& [track, row] : used) {
            if (track != named)
                name_row("process_name", {track}, 0, text(all_.tracks, track));
            named = track;
            name_row("thread_name", {track}, row, "row " + std::to_string(row + 1));
        }
    }

    static std::string_view text(const std::vector<std::string>& from, std::size_t i) noexcept
    {
        return i < from.size() ? std::string_view(from[i]) : "other";
    }

    void write_time(std::string_view key, std::chrono::nanoseconds t)
    {
        out_.append(",\"").append(key).append("\":");
        append_microseconds(out_, t.count());
    }

    void write_name(const trace_event& e)
    {
        out_ += ",\"name\":";
        append_string(out_, text(all_.names, e.name.index));
        out_.append(",\"cat\":\"").append(to_string(e.kind)).append("\"");
        write_time("ts", e.begin - start_);
    }

    void write_id(std::string_view key, std::uint64_t id)
    {
        out_.append(",\"").append(key).append("\":\"");
        append_hexadecimal(out_, id);
        out_ += '"';
    }

    void write_arguments(const trace_event& e)
    {
        out_.append(",\"args\":{\"outcome\":\"").append(to_string(e.outcome)).append("\"");
        if (e.queued.count() != 0)
            write_time("queued_us", e.queued);
        if (e.value != 0)
            out_.append(",\"").append(value_name(e.kind)).append("\":").append(std::to_string(e.value));
        if (e.id != 0)
            write_id("id", e.id);
        if (const auto found = parents_.find(e.id); e.id != 0 && found != parents_.end()) {
            const trace_event& parent = *found->second;
            out_ += ",\"trace_id\":\"";
            append_hexadecimal(out_, parent.leads_to);
            append_hexadecimal(out_, parent.value);
            out_ += '"';
            write_id("parent_id", parent.parent);
        }
        if (const auto found = all_.texts.find(e.text); e.text != 0 && found != all_.texts.end()) {
            out_ += ",\"text\":";
            append_string(out_, found->second);
        }
        out_ += "}}";
    }

    void write_span(std::size_t i)
    {
        const trace_event& e = *spans_[i];
        begin_event("X", e.track, rows_[i]);
        write_name(e);
        write_time("dur", std::chrono::nanoseconds(periods_[i].end - periods_[i].begin));
        write_arguments(e);
    }

    void write_instant(const trace_event& e)
    {
        begin_event("i", e.track, 0);
        write_name(e);
        out_ += ",\"s\":\"p\"";
        write_arguments(e);
    }

    /// Null: there is none, or it was overwritten.
    const std::size_t* find_span(std::uint64_t id) const noexcept
    {
        const auto found = id != 0 ? by_id_.find(id) : by_id_.end();
        return found == by_id_.end() ? nullptr : &found->second;
    }

    void write_arrow(std::size_t from, std::size_t to)
    {
        ++arrows_;
        write_arrow_end("s", from);
        write_arrow_end("f\",\"bp\":\"e", to);
    }

    void write_arrow_end(std::string_view phase, std::size_t i)
    {
        const trace_event& e = *spans_[i];
        begin_event(phase, e.track, rows_[i]);
        out_.append(",\"name\":\"flow\",\"cat\":\"flow\",\"id\":").append(std::to_string(arrows_));
        write_time("ts", e.begin - start_);
        out_ += '}';
    }

    const trace_snapshot& all_;
    trace_event::clock::time_point start_;
    std::vector<const trace_event*> spans_;
    std::vector<detail::trace_period> periods_;
    std::vector<std::uint32_t> rows_;
    std::vector<const trace_event*> instants_;
    std::unordered_map<std::uint64_t, const trace_event*> parents_;
    /// The spans with ids.
    std::unordered_map<std::uint64_t, std::size_t> by_id_;
    std::string out_;
    std::uint64_t arrows_ = 0;
    bool first_ = true;
};

} // namespace

std::string trace_json(const trace_snapshot& events)
{
    return trace_writer(events).write();
}

std::string trace_json(const trace_buffer& events)
{
    return trace_json(events.snapshot());
}

result<void> write_trace(const trace_buffer& events, const std::string& path)
{
    const std::string text = trace_json(events);
    BOOST_OUTCOME_TRY(auto file, detail::replaced_file::create(path));
    if (auto ec = file.write(std::as_bytes(std::span(text))))
        return ec;
    if (auto ec = file.commit())
        return ec;
    return success();
}

} // namespace coaccel::telemetry
