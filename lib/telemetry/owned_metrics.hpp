#ifndef COACCEL_TELEMETRY_OWNED_METRICS_HPP
#define COACCEL_TELEMETRY_OWNED_METRICS_HPP

#include "telemetry/metric_names.hpp"
#include "telemetry/sample_set.hpp"

#include <coaccel/core/result.hpp>
#include <coaccel/telemetry/counter.hpp>
#include <coaccel/telemetry/histogram.hpp>

#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace coaccel::detail {

/// The metrics that a registry has created.
class owned_metrics {
public:
    /// errc::invalid_argument if the name is reserved for this library and not in use.
    error_code check_reserved(std::string_view name) const;

    result<telemetry::counter> add_counter(std::string_view name, std::string_view help, telemetry::labels with);
    result<telemetry::gauge> add_gauge(std::string_view name, std::string_view help, telemetry::labels with);
    result<telemetry::histogram> add_histogram(std::string_view name, std::string_view help, telemetry::labels with,
                                               const telemetry::histogram_options& options);

    /// Their current values.
    void write(sample_list& out) const;

private:
    using metric = std::variant<telemetry::counter, telemetry::gauge, telemetry::histogram>;

    struct member {
        telemetry::labels with;
        metric content;
    };

    struct family {
        telemetry::metric_type type;
        std::string help;
        std::map<std::string, member> members;
    };

    template <class Metric, class... Args>
    result<Metric> add(telemetry::metric_type type, std::string_view name, std::string_view help,
                       telemetry::labels&& with, const Args&... args);

    metric_names names_;
    std::map<std::string, family, std::less<>> families_;
};

} // namespace coaccel::detail

#endif
