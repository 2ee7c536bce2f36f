#ifndef COACCEL_BENCH_REPORT_HPP
#define COACCEL_BENCH_REPORT_HPP

#include "row.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace coaccel::bench {

struct measurement {
    /// The names of the rows it adds, separated by spaces.
    std::string rows_of_it;
    std::function<void(rows&)> measure;
};

struct arguments {
    /// Null: no JSON file is written.
    const char* json = nullptr;
    /// Only rows whose name contains this text.
    std::string filter;
    bool breakdown = false;
};

enum class extras { none, breakdown };

/// Prints the usage and returns nullopt when the command line is invalid.
std::optional<arguments> parse(int argc, char** argv, extras more);

/// Measures and prints row by row. Reports a measurement that throws and continues with the next one. Returns false
/// when one threw or the JSON file could not be written.
bool report(const std::vector<measurement>& measurements, const arguments& how);

} // namespace coaccel::bench

#endif
