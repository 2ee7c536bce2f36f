#include "telemetry/sample_set.hpp"

#include <coaccel/telemetry/metric_writer.hpp>

#include <cmath>
#include <limits>
#include <utility>

namespace coaccel {

namespace detail {
namespace {

bool is_valid(const telemetry::histogram_snapshot& h) noexcept
{
    double last = -std::numeric_limits<double>::infinity();
    for (const double bound : h.bounds) {
        if (!std::isfinite(bound) || bound <= last)
            return false;
        last = bound;
    }
    std::uint64_t left = h.count;
    for (std::size_t i = 0; i < h.buckets.size(); ++i) {
        const auto& b = h.buckets[i];
        if (std::isnan(b.upper) || (i > 0 && b.upper <= h.buckets[i - 1].upper) || b.count > left)
            return false;
        left -= b.count;
    }
    return true;
}

bool is_valid(const telemetry::summary_snapshot& s) noexcept
{
    double last = -1;
    for (const auto& quantile : s.quantiles) {
        // False also for NaN.
        if (!(quantile.q >= 0 && quantile.q <= 1 && quantile.q > last))
            return false;
        last = quantile.q;
    }
    return true;
}

/// Whether Prometheus would accept the value; it refuses all samples of a reply for one that is not valid.
bool is_valid(const sample_list::item& one) noexcept
{
    const auto& value = one.value.value;
    if (const auto* h = std::get_if<telemetry::histogram_snapshot>(&value))
        return is_valid(*h);
    if (const auto* s = std::get_if<telemetry::summary_snapshot>(&value))
        return is_valid(*s);
    const double number = *std::get_if<double>(&value);
    return one.type != telemetry::metric_type::counter || (std::isfinite(number) && number >= 0);
}

} // namespace

bool sample_set::add(sample_list::item&& one)
{
    one.help = clean_text(one.help);
    for (auto& l : one.value.labels)
        l.value = clean_text(l.value);
    if (!is_valid(one) || check_labels(one.type, one.name, one.value.labels) ||
        names_.claim(one.type, one.name, one.help)) {
        ++dropped_;
        return false;
    }
    auto [at, added] = families_.try_emplace(one.name);
    if (added)
        at->second.content = {one.name, std::move(one.help), one.type, {}};
    if (!at->second.keys.insert(label_key(one.value.labels)).second) {
        ++dropped_;
        return false;
    }
    at->second.content.samples.push_back(std::move(one.value));
    return true;
}

void sample_set::add(sample_list&& all)
{
    for (auto& one : all.items)
        add(std::move(one));
}

void sample_set::replace(std::string_view name, double value)
{
    if (const auto at = families_.find(name); at != families_.end())
        at->second.content.samples.front().value = value;
}

std::vector<telemetry::metric_family> sample_set::take()
{
    std::vector<telemetry::metric_family> all;
    all.reserve(families_.size());
    for (auto& [name, f] : families_)
        all.push_back(std::move(f.content));
    families_.clear();
    return all;
}

} // namespace detail

namespace telemetry {

std::string_view to_string(metric_type type) noexcept
{
    switch (type) {
    case metric_type::counter: return "counter";
    case metric_type::gauge: return "gauge";
    case metric_type::histogram: return "histogram";
    case metric_type::summary: return "summary";
    }
    return "unknown";
}

void metric_writer::counter(std::string_view name, std::string_view help, const labels& with, double value)
{
    out_.items.push_back({metric_type::counter, std::string(name), std::string(help), {with, value}});
}

void metric_writer::gauge(std::string_view name, std::string_view help, const labels& with, double value)
{
    out_.items.push_back({metric_type::gauge, std::string(name), std::string(help), {with, value}});
}

void metric_writer::histogram(std::string_view name, std::string_view help, const labels& with,
                              histogram_snapshot value)
{
    out_.items.push_back({metric_type::histogram, std::string(name), std::string(help), {with, std::move(value)}});
}

void metric_writer::summary(std::string_view name, std::string_view help, const labels& with, summary_snapshot value)
{
    out_.items.push_back({metric_type::summary, std::string(name), std::string(help), {with, std::move(value)}});
}

} // namespace telemetry

} // namespace coaccel
