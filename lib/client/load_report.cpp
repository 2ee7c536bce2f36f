#include "client/load_test.hpp"
#include "core/escape_text.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <cstdio>
#include <utility>

namespace coaccel::client {
namespace {

constexpr std::pair<const char*, double> shown_quantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

std::string number_text(const char* format, double value)
{
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

} // namespace

std::string report_text(const load_report& report)
{
    const auto& l = report.latencies;
    std::string all = "answered  " + std::to_string(l.count()) + " requests in " + duration_text(report.elapsed) +
                      ", " + number_text("%.1f", report.rate()) + " per second, over " +
                      std::to_string(report.connections) + (report.connections == 1 ? " connection" : " connections") +
                      (report.interrupted ? " (interrupted)\n" : "\n");
    all += "failed    " + std::to_string(report.failed()) + "\n";
    for (const auto& [kind, n] : report.failures) {
        const auto example = report.examples.find(kind);
        all += "  " + std::to_string(n) + " x " + detail::escape_text(kind) +
               (example == report.examples.end() ? "" : ": " + detail::escape_text(example->second)) + "\n";
    }
    if (l.count() == 0)
        return all;
    all += "latency   mean " + duration_text(l.mean()) + ", min " + duration_text(l.least());
    for (const auto& [name, q] : shown_quantiles)
        all += ", " + std::string(name) + " " + duration_text(l.quantile(q));
    return all + ", max " + duration_text(l.most()) + "\n" + l.chart();
}

std::string report_json(const load_report& report)
{
    const auto& l = report.latencies;
    const auto ms = [](std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); };
    boost::json::object latency{{"mean", ms(l.mean())}, {"min", ms(l.least())}, {"max", ms(l.most())}};
    for (const auto& [name, q] : shown_quantiles)
        latency[name] = ms(l.quantile(q));
    boost::json::object failures;
    for (const auto& [kind, n] : report.failures)
        failures[kind] = n;
    return boost::json::serialize(
        boost::json::object{{"answered", l.count()},
                            {"failed", report.failed()},
                            {"seconds", std::chrono::duration<double>(report.elapsed).count()},
                            {"per_second", report.rate()},
                            {"connections", report.connections},
                            {"interrupted", report.interrupted},
                            {"latency_ms", std::move(latency)},
                            {"failures", std::move(failures)}});
}

} // namespace coaccel::client
