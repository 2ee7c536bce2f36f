#ifndef COACCEL_TELEMETRY_LABEL_HPP
#define COACCEL_TELEMETRY_LABEL_HPP

#include <coaccel/core/config.hpp>

#include <string>
#include <utility>
#include <vector>

namespace coaccel::telemetry {

/// One label of a metric. The name consists of letters, digits and underscores and begins neither with a digit nor with
/// two underscores; the value is any text.
struct label {
    /// A label of this name and value.
    label(std::string n, std::string v) noexcept : name(std::move(n)), value(std::move(v)) {}

    std::string name;  ///< The name.
    std::string value; ///< The value. What is not UTF-8 is replaced by U+FFFD.

    friend bool operator==(const label&, const label&) = default;
};

/// The labels of a metric: `{{"device", "gpu0"}, {"outcome", "failed"}}`.
using labels = std::vector<label>;

} // namespace coaccel::telemetry

#endif
