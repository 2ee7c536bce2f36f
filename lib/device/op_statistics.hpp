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

    void fill(device_stats& s) const;

private:
    struct row;

    row& row_of(const request& r);

    struct row {
        explicit row(std::string n) : name(std::move(n)) {}
        std::string name;
        latency_histogram times;
    };

    std::uint64_t completed_ = 0;
    std::uint64_t failed_ = 0;
    std::uint64_t cancelled_ = 0;
    std::uint64_t expired_ = 0;
    std::uint64_t ops_ = 0;
    std::uint64_t bytes_to_device_ = 0;
    std::uint64_t bytes_to_host_ = 0;
    boost::unordered_flat_map<std::uint64_t, std::unique_ptr<row>> rows_;
    /// The row of the last lookup: usually the next one is the same.
    row* last_row_ = nullptr;
    std::uint64_t last_key_ = 0;
};

} // namespace coaccel::detail

#endif
