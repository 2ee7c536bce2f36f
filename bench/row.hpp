#ifndef COACCEL_BENCH_ROW_HPP
#define COACCEL_BENCH_ROW_HPP

#include <algorithm>
#include <string>
#include <vector>

namespace coaccel::bench {

/// One line of the table: our value and the reference value, measured alternately in one run.
struct row {
    std::string name;
    double ratio;
    double ours;
    double theirs;
    std::string unit;
    /// Empty: no goal.
    std::string goal;
    bool met;
};

inline double median(std::vector<double> values)
{
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

/// The value that this fraction of the values does not exceed.
inline double percentile(std::vector<double> values, double share)
{
    const auto at = std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
    return values[at];
}

struct pair {
    double ours;
    double theirs;
};

/// Alternates both, so that they run under the same conditions, and returns the median of each.
template <class Ours, class Theirs>
pair side_by_side(int rounds, Ours ours, Theirs theirs)
{
    ours();
    theirs();
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < rounds; ++i) {
        a.push_back(ours());
        b.push_back(theirs());
    }
    return {median(a), median(b)};
}

inline row at_most(std::string name, pair p, double goal, std::string unit, std::string goal_text)
{
    return {std::move(name),      p.ours / p.theirs,        p.ours, p.theirs, std::move(unit),
            std::move(goal_text), p.ours <= goal * p.theirs};
}

inline row at_least(std::string name, pair p, double goal, std::string unit, std::string goal_text)
{
    return {std::move(name),      p.ours / p.theirs,        p.ours, p.theirs, std::move(unit),
            std::move(goal_text), p.ours >= goal * p.theirs};
}

/// Our value may exceed the reference by this absolute amount.
inline row at_most_more(std::string name, pair p, double goal, std::string unit, std::string goal_text)
{
    return {std::move(name),      p.ours / p.theirs,        p.ours, p.theirs, std::move(unit),
            std::move(goal_text), p.ours - p.theirs <= goal};
}

/// An informative row without a goal.
inline row without_goal(std::string name, pair p, std::string unit)
{
    return {std::move(name), p.ours / p.theirs, p.ours, p.theirs, std::move(unit), "", true};
}

using rows = std::vector<row>;

void mailbox_rows(rows& table);
void exec_rows(rows& table);
void telemetry_rows(rows& table);
void gemm_rows(rows& table);
void dense_rows(rows& table);
void plan_rows(rows& table);
void plan_fault_rows(rows& table);
void batcher_rows(rows& table);
void fair_share_row(rows& table);
void hot_swap_rows(rows& table);
void http_request_rows(rows& table);
void other_server_row(rows& table);
void http_fault_row(rows& table);
void idle_connection_row(rows& table);
void worker_round_trip_rows(rows& table);
void worker_depth_row(rows& table);
void worker_copy_rows(rows& table);
void worker_recovery_rows(rows& table);
void worker_memory_row(rows& table);

} // namespace coaccel::bench

#endif
