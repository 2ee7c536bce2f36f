#ifndef COACCEL_EXAMPLE_DEMO_REPORT_HPP
#define COACCEL_EXAMPLE_DEMO_REPORT_HPP

#include "tally.hpp"

#include <coaccel/telemetry/snapshot.hpp>

#include <chrono>

namespace demo {

/// The current counts on one line: rewritten in place on a terminal, otherwise printed every two seconds.
class progress_line {
public:
    progress_line();

    std::chrono::milliseconds interval() const;
    void show(const tally& counts, std::chrono::duration<double> elapsed) const;
    void finish() const;

private:
    bool terminal_;
};

/// Prints the results. Returns true when there were faults, and no request was lost, wrong or failed.
bool summarize(tally& counts, const coaccel::telemetry::snapshot& metrics, int clients,
               std::chrono::duration<double> elapsed);

} // namespace demo

#endif
