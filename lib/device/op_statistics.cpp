#include "device/op_statistics.hpp"

#include "device/request_name.hpp"

#include <boost/asio/error.hpp>

#include <new>
#include <utility>

namespace coaccel::detail {
namespace {

/// Counts in a device_stats or a plan_stats.
template <class Stats>
void count_end(Stats& s, const error_code& ec) noexcept
{
    if (!ec)
        ++s.completed;
    else if (ec == boost::asio::error::operation_aborted)
        ++s.cancelled;
    else if (ec == errc::deadline_exceeded)
        ++s.expired;
    else
        ++s.failed;
}

/// Of the completed run of a plan.
template <class Stats>
void count_bytes(Stats& s, const request& run) noexcept
{
    s.bytes_to_device += run.bytes - run.bytes_to_host;
    s.bytes_to_host += run.bytes_to_host;
}

} // namespace

op_statistics::row& op_statistics::row_of(const request& r)
{
    const auto key = name_key(r);
    if (last_row_ && key == last_key_)
        return *last_row_;
    auto found = rows_.find(key);
    if (found == rows_.end())
        found = rows_.emplace(key, std::make_unique<row>(name_text(r))).first;
    last_key_ = key;
    last_row_ = found->second.get();
    return *last_row_;
}

void op_statistics::ran(const request& r, std::chrono::nanoseconds time) noexcept
try {
    row_of(r).times.add(time);
} catch (const std::bad_alloc&) {
    // No memory for a new row: the op is missing from the latencies.
}

plan_stats* op_statistics::plan_row(const request& r) noexcept
try {
    auto& plan = row_of(r).plan;
    if (!plan)
        plan = std::make_unique<plan_stats>();
    return plan.get();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void op_statistics::ended(const request& r, const error_code& ec) noexcept
{
    count_end(counts_, ec);
    plan_stats* const plan = r.pool ? plan_row(r) : nullptr;
    if (plan)
        count_end(*plan, ec);
    if (ec)
        return;
    const auto ops = counted_ops(r);
    counts_.ops += ops.size();
    if (r.pool) {
        count_bytes(counts_, r);
        if (plan)
            count_bytes(*plan, r);
        return;
    }
    if (r.bytes > 0 && !ops.back().info->operands.empty())
        (writes(ops.back().info->operands.front().mode) ? counts_.bytes_to_device : counts_.bytes_to_host) += r.bytes;
}

void op_statistics::rerun(const request& r) noexcept
{
    if (plan_stats* const plan = plan_row(r))
        ++plan->reruns;
}

void op_statistics::fill(device_stats& s) const
{
    s.completed = counts_.completed;
    s.failed = counts_.failed;
    s.cancelled = counts_.cancelled;
    s.expired = counts_.expired;
    s.ops = counts_.ops;
    s.bytes_to_device = counts_.bytes_to_device;
    s.bytes_to_host = counts_.bytes_to_host;
    for (const auto& [key, r] : rows_) {
        // A plan whose runs were all refused has no latencies.
        if (r->times.count() > 0)
            s.latencies.push_back(r->times.summary(r->name));
        if (!r->plan)
            continue;
        s.plans.push_back(*r->plan);
        s.plans.back().op = r->name;
    }
}

} // namespace coaccel::detail
