#include "posix/replaced_file.hpp"
#include "telemetry/json_writer.hpp"
#include "telemetry/trace_rows.hpp"

#include <coaccel/telemetry/trace_json.hpp>

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
        json_.begin_object();
        json_.member("displayTimeUnit", "ns");
        json_.key("otherData");
        json_.begin_object();
        json_.member("start", utc_text(all_.system_start));
        (json_.key("events"), json_.integer(all_.added));
        (json_.key("lost"), json_.integer(all_.lost));
        json_.end_object();
        json_.key("traceEvents");
        json_.begin_array();
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
        out_ += '\n';
        json_.end_array();
        json_.end_object();
        out_ += '\n';
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
        json_.new_line();
        json_.begin_object();
        json_.member("ph", phase);
        (json_.key("pid"), json_.integer(track.index + 1u));
        (json_.key("tid"), json_.integer(std::uint64_t{row} + 1));
    }

    void name_row(std::string_view what, trace_track track, std::uint32_t row, std::string_view name)
    {
        begin_event("M", track, row);
        json_.member("name", what);
        json_.key("args");
        json_.begin_object();
        json_.member("name", name);
        json_.end_object();
        json_.end_object();
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

    void write_time(std::string_view key, std::chrono::nanoseconds t) { (json_.key(key), json_.microseconds(t)); }

    void write_name(const trace_event& e)
    {
        json_.member("name", text(all_.names, e.name.index));
        json_.member("cat", to_string(e.kind));
        write_time("ts", e.begin - start_);
    }

    void write_arguments(const trace_event& e)
    {
        json_.key("args");
        json_.begin_object();
        json_.member("outcome", to_string(e.outcome));
        if (e.queued.count() != 0)
            write_time("queued_us", e.queued);
        if (e.value != 0)
            (json_.key(value_name(e.kind)), json_.integer(e.value));
        if (e.id != 0)
            (json_.key("id"), json_.hexadecimal({e.id}));
        if (const auto found = parents_.find(e.id); e.id != 0 && found != parents_.end()) {
            const trace_event& parent = *found->second;
            (json_.key("trace_id"), json_.hexadecimal({parent.leads_to, parent.value}));
            (json_.key("parent_id"), json_.hexadecimal({parent.parent}));
        }
        if (const auto found = all_.texts.find(e.text); e.text != 0 && found != all_.texts.end())
            json_.member("text", found->second);
        json_.end_object();
        json_.end_object();
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
        json_.member("s", "p");
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
        json_.end_object();
        write_arrow_end("f", to);
        // At the span around this time, not at the next one.
        json_.member("bp", "e");
        json_.end_object();
    }

    void write_arrow_end(std::string_view phase, std::size_t i)
    {
        const trace_event& e = *spans_[i];
        begin_event(phase, e.track, rows_[i]);
        json_.member("name", "flow");
        json_.member("cat", "flow");
        (json_.key("id"), json_.integer(arrows_));
        write_time("ts", e.begin - start_);
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
    detail::json_writer json_{out_};
    std::uint64_t arrows_ = 0;
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
