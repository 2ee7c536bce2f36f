#ifndef COACCEL_BENCH_REPORT_HPP
#define COACCEL_BENCH_REPORT_HPP

#include "row.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace coaccel::bench {

struct measurement {
    /// The names of the rows it adds, with spaces between.
    std::string rows_of_it;
    std::function<void(rows&)> measure;
};

struct arguments {
    /// Null: none is written.
    const char* json = nullptr;
    /// Only rows whose name contains it.
    std::string filter;
    bool breakdown = false;
};

enum class extras { none, breakdown };

/// Nothing, once the usage has been printed, when the command line is none of ours.
std::optional<arguments> parse(int argc, char** argv, extras more);

/// Measures and prints row by row. A measurement that throws is reported, and the next is made. False when one threw or
/// the JSON file could not be written.
bool report(const std::vector<measurement>& measurements, const arguments& how);

} // namespace coaccel::bench

#endif
