#ifndef COACCEL_TELEMETRY_SAMPLE_SET_HPP
#define COACCEL_TELEMETRY_SAMPLE_SET_HPP

#include "telemetry/metric_names.hpp"

#include <coaccel/telemetry/snapshot.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::detail {

/// What one source has written, unchecked.
class sample_list {
public:
    struct item {
        telemetry::metric_type type;
        std::string name;
        std::string help;
        telemetry::sample value;
    };

    std::vector<item> items;
};

/// The samples of one collection. It accepts only samples that can stand beside those it has.
class sample_set {
public:
    /// False: the sample was dropped.
    bool add(sample_list::item&& one);
    void add(sample_list&& all);

    std::uint64_t dropped() const noexcept { return dropped_; }

    /// Replaces the value of the only sample of a family.
    void replace(std::string_view name, double value);

    /// The families, sorted by name.
    std::vector<telemetry::metric_family> take();

private:
    struct family {
        telemetry::metric_family content;
        std::set<std::string> keys;
    };

    metric_names names_;
    std::map<std::string, family, std::less<>> families_;
    std::uint64_t dropped_ = 0;
};

} // namespace coaccel::detail

#endif
