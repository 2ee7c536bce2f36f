#ifndef COACCEL_TELEMETRY_METRIC_WRITER_HPP
#define COACCEL_TELEMETRY_METRIC_WRITER_HPP

#include <coaccel/telemetry/histogram.hpp>
#include <coaccel/telemetry/snapshot.hpp>

#include <string>
#include <string_view>

namespace coaccel::detail {

class sample_list;

} // namespace coaccel::detail

namespace coaccel::telemetry {

/// Where a source writes its samples during a collection, see registry::add_source.
///
/// A sample is dropped, and counted in coaccel_telemetry_dropped_samples_total, if its name or a label is not valid, if
/// the name was used before with another type or help, if it was already written with the same labels, or if its value
/// is not valid:
/// - a counter that is negative or not finite,
/// - a histogram whose bounds are not finite or not in ascending order, whose buckets are not in ascending order, or
///   whose buckets have more values than its count,
/// - a summary with a fraction outside 0 to 1, or whose fractions are not in ascending order.
///
/// Exceptions: std::bad_alloc.
/// Thread safety: only for the function that it was passed to, and only during the call.
class COACCEL_DECL metric_writer {
public:
    /// For the registry.
    explicit metric_writer(detail::sample_list& out) noexcept : out_(out) {}
    metric_writer(const metric_writer&) = delete;
    metric_writer& operator=(const metric_writer&) = delete;

    /// Writes a number that only grows; its name ends with "_total".
    void counter(std::string_view name, std::string_view help, const labels& with, double value);
    /// Writes a number that can take any value.
    void gauge(std::string_view name, std::string_view help, const labels& with, double value);
    /// Writes the content of a histogram.
    void histogram(std::string_view name, std::string_view help, const labels& with, histogram_snapshot value);
    /// Writes the current content of a histogram.
    void histogram(std::string_view name, std::string_view help, const labels& with, const telemetry::histogram& value)
    {
        histogram(name, help, with, value.snapshot());
    }
    /// Writes quantiles.
    void summary(std::string_view name, std::string_view help, const labels& with, summary_snapshot value);

private:
    detail::sample_list& out_;
};

} // namespace coaccel::telemetry

#endif
