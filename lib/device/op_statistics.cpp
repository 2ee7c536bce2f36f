#include "device/op_statistics.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace coaccel::detail {
namespace {

/// The ops of a request, without the allocation that precedes a copy.
std::span<const bound_op> counted(const request& r) noexcept
{
    const bool allocates = r.ops.size() > 1 && r.ops.front().info->role == op_role::allocate;
    return allocates ? r.ops.subspan(1) : r.ops;
}

// Uses ids, because ops with caller-defined arguments have many descriptions but one name.
std::uint64_t key_of(std::span<const bound_op> ops) noexcept
{
    std::uint64_t key = ops.front().info->id;
    for (const bound_op& o : ops.subspan(1))
        key = (key * 0x100000001b3ull) ^ o.info->id; // the order matters
    return key;
}

/// For a seq: "seq(memory.fill<f32>, memory.copy<f32>)"; a long one lists the first four.
std::string name_of(std::span<const bound_op> ops)
{
    constexpr std::size_t most = 4;
    if (ops.size() == 1)
        return ops.front().info->name;
    std::string text = "seq(";
    for (std::size_t i = 0; i < std::min(ops.size(), most); ++i)
        text.append(i == 0 ? "" : ", ").append(ops[i].info->name);
    if (ops.size() > most)
        text.append(" and ").append(std::to_string(ops.size() - most)).append(" more");
    return text + ")";
}

} // namespace

op_statistics::row& op_statistics::row_of(const request& r)
{
    const auto key = r.title ? r.title->key : key_of(counted(r));
    if (last_row_ && key == last_key_)
        return *last_row_;
    auto found = rows_.find(key);
    if (found == rows_.end())
        found = rows_.emplace(key, std::make_unique<row>(r.title ? r.title->text : name_of(counted(r)))).first;
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
    const auto ops = counted(r);
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
