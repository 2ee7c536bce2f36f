#ifndef COACCEL_DEVICE_OP_STATISTICS_HPP
#define COACCEL_DEVICE_OP_STATISTICS_HPP

#include "device/latency.hpp"

#include <coaccel/core/detail/request.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>
#include <span>
#include <string>

namespace coaccel::detail {

/// Counters of a device's completed requests. Each counter only grows, so that the difference of two snapshots gives a
/// rate.
class COACCEL_DECL op_statistics {
public:
    /// A request that was started on a context has ended, `time` after its arrival.
    void ran(const request& r, std::chrono::nanoseconds time) noexcept;

    /// A request has ended, whether it was started on a context or not.
    void ended(const request& r, const error_code& ec) noexcept;

    /// The run of a plan was started again. Preconditions: it has a pool.
    void rerun(const request& r) noexcept;

    void fill(device_stats& s) const;

private:
    struct row;

    row& row_of(const request& r);

    struct row {
        explicit row(std::string n) : name(std::move(n)) {}
        std::string name;
        latency_histogram times;
        /// Only for plans.
        std::unique_ptr<plan_stats> plan;
    };

    /// Null: there is no memory for it.
    plan_stats* plan_row(const request& r) noexcept;

    struct counts {
        std::uint64_t completed = 0;
        std::uint64_t failed = 0;
        std::uint64_t cancelled = 0;
        std::uint64_t expired = 0;
        std::uint64_t ops = 0;
        std::uint64_t bytes_to_device = 0;
        std::uint64_t bytes_to_host = 0;
    };

    counts counts_;
    boost::unordered_flat_map<std::uint64_t, std::unique_ptr<row>> rows_;
    /// The row of the last lookup: usually the next one is the same.
    row* last_row_ = nullptr;
    std::uint64_t last_key_ = 0;
};

} // namespace coaccel::detail

#endif
