#ifndef COACCEL_TELEMETRY_SNAPSHOT_HPP
#define COACCEL_TELEMETRY_SNAPSHOT_HPP

#include <coaccel/device/device_stats.hpp>
#include <coaccel/telemetry/histogram.hpp>
#include <coaccel/telemetry/label.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace coaccel::telemetry {

/// The kinds of metrics.
enum class metric_type : std::uint8_t {
    counter,   ///< Only grows.
    gauge,     ///< Takes any value.
    histogram, ///< Counts in buckets.
    summary,   ///< Quantiles that were computed by their source.
};

/// The name of the enumerator, such as "counter".
COACCEL_DECL std::string_view to_string(metric_type type) noexcept;

/// Quantiles of values, with their number and their sum.
struct summary_snapshot {
    /// One quantile.
    struct quantile {
        double q = 0;     ///< The fraction, from 0 to 1.
        double value = 0; ///< The value that this fraction of all values does not exceed.

        friend bool operator==(const quantile&, const quantile&) = default;
    };

    std::vector<quantile> quantiles; ///< In ascending order.
    std::uint64_t count = 0;         ///< The number of values.
    double sum = 0;                  ///< The sum of the values.

    friend bool operator==(const summary_snapshot&, const summary_snapshot&) = default;
};

/// The value of one metric with its labels.
struct sample {
    telemetry::labels labels; ///< The labels, in the order in which they were given.
    /// The value: a number for a counter and a gauge.
    std::variant<double, histogram_snapshot, summary_snapshot> value;
};

/// All samples of one name.
struct metric_family {
    std::string name;                      ///< The name; that of a counter ends with "_total".
    std::string help;                      ///< What the metric tells.
    metric_type type = metric_type::gauge; ///< The kind.
    std::vector<sample> samples;           ///< The samples, no two of which have the same labels.
};

/// A device at the time of a collection.
struct device_sample {
    std::string name;                  ///< The name that it was added with.
    device_status status;              ///< Its state, and the reason for it.
    std::optional<device_stats> stats; ///< Absent if it did not answer in time.
};

/// What a registry has collected.
struct snapshot {
    std::chrono::system_clock::time_point at{}; ///< When the collection ended.
    std::vector<metric_family> families;        ///< Sorted by name.
    std::vector<device_sample> devices;         ///< In the order in which they were added.
};

} // namespace coaccel::telemetry

#endif
