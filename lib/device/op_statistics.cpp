#include "device/op_statistics.hpp"

#include "device/request_name.hpp"

#include <boost/asio/error.hpp>

#include <new>
#include <utility>

namespace coaccel::detail {

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

void op_statistics::ended(const request& r, const error_code& ec) noexcept
{
    if (ec) {
        auto& counter = ec == boost::asio::error::operation_aborted ? cancelled_
                        : ec == errc::deadline_exceeded             ? expired_
                                                                    : failed_;
        ++counter;
        return;
    }
    ++completed_;
    const auto ops = counted_ops(r);
    ops_ += ops.size();
    if (r.pool) {
        bytes_to_device_ += r.bytes - r.bytes_to_host;
        bytes_to_host_ += r.bytes_to_host;
        return;
    }
    if (r.bytes > 0 && !ops.back().info->operands.empty())
        (writes(ops.back().info->operands.front().mode) ? bytes_to_device_ : bytes_to_host_) += r.bytes;
}

void op_statistics::fill(device_stats& s) const
{
    s.completed = completed_;
    s.failed = failed_;
    s.cancelled = cancelled_;
    s.expired = expired_;
    s.ops = ops_;
    s.bytes_to_device = bytes_to_device_;
    s.bytes_to_host = bytes_to_host_;
    for (const auto& [key, r] : rows_)
        s.latencies.push_back(r->times.summary(r->name));
}

} // namespace coaccel::detail
