#include "telemetry/owned_metrics.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <utility>

namespace coaccel::detail {

using telemetry::metric_type;

error_code owned_metrics::check_reserved(std::string_view name) const
{
    if (!name.starts_with("coaccel_") || families_.contains(name))
        return {};
    return op_error(errc::invalid_argument, "telemetry",
                    {"the metric name \"", name, "\" begins with \"coaccel_\", which is reserved"});
}

template <class Metric, class... Args>
result<Metric> owned_metrics::add(metric_type type, std::string_view name, std::string_view help,
                                  telemetry::labels&& with, const Args&... args)
{
    for (auto& l : with)
        l.value = clean_text(l.value);
    if (const error_code ec = check_labels(type, name, with))
        return ec;
    const std::string clean_help = clean_text(help);
    if (const error_code ec = names_.claim(type, name, clean_help))
        return ec;
    family& f = families_.try_emplace(std::string(name), family{type, clean_help, {}}).first->second;
    const std::string key = label_key(with);
    auto at = f.members.find(key);
    if (at == f.members.end())
        at = f.members.emplace(key, member{std::move(with), Metric(args...)}).first;
    return std::get<Metric>(at->second.content);
}

result<telemetry::counter> owned_metrics::add_counter(std::string_view name, std::string_view help,
                                                      telemetry::labels with)
{
    return add<telemetry::counter>(metric_type::counter, name, help, std::move(with));
}

result<telemetry::gauge> owned_metrics::add_gauge(std::string_view name, std::string_view help, telemetry::labels with)
{
    return add<telemetry::gauge>(metric_type::gauge, name, help, std::move(with));
}

result<telemetry::histogram> owned_metrics::add_histogram(std::string_view name, std::string_view help,
                                                          telemetry::labels with,
                                                          const telemetry::histogram_options& options)
{
    return add<telemetry::histogram>(metric_type::histogram, name, help, std::move(with), options);
}

void owned_metrics::write(sample_list& out) const
{
    for (const auto& [name, f] : families_)
        for (const auto& [key, m] : f.members) {
            telemetry::sample s{m.with, 0.0};
            if (const auto* c = std::get_if<telemetry::counter>(&m.content))
                s.value = static_cast<double>(c->value());
            else if (const auto* g = std::get_if<telemetry::gauge>(&m.content))
                s.value = g->value();
            else
                s.value = std::get<telemetry::histogram>(m.content).snapshot();
            out.items.push_back({f.type, name, f.help, std::move(s)});
        }
}

} // namespace coaccel::detail
