#ifndef COACCEL_TELEMETRY_METRIC_NAMES_HPP
#define COACCEL_TELEMETRY_METRIC_NAMES_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/telemetry/label.hpp>
#include <coaccel/telemetry/snapshot.hpp>

#include <map>
#include <string>
#include <string_view>

namespace coaccel::detail {

/// errc::invalid_argument if Prometheus would refuse the name, or if it does not have the suffix of its type.
error_code check_metric_name(telemetry::metric_type type, std::string_view name);

/// errc::invalid_argument for an invalid, repeated or reserved name of a label.
error_code check_labels(telemetry::metric_type type, std::string_view metric, const telemetry::labels& with);

/// The text as valid UTF-8 without control characters except tab and newline; the rest becomes U+FFFD.
std::string clean_text(std::string_view text);

/// Equal for labels of the same names and values, in any order.
std::string label_key(const telemetry::labels& with);

/// The names in use, each with one type and one help text. A family also uses the names of its lines in the exposition,
/// such as x_bucket, x_sum and x_count for the histogram x.
class metric_names {
public:
    /// errc::invalid_argument if the name is not valid or is used in another way.
    error_code claim(telemetry::metric_type type, std::string_view name, std::string_view help);

private:
    struct use {
        telemetry::metric_type type;
        std::string help;
    };

    std::map<std::string, use, std::less<>> families_;
    /// From the names of lines to their family.
    std::map<std::string, std::string, std::less<>> lines_;
};

} // namespace coaccel::detail

#endif
