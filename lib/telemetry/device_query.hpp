#ifndef COACCEL_TELEMETRY_DEVICE_QUERY_HPP
#define COACCEL_TELEMETRY_DEVICE_QUERY_HPP

#include <coaccel/device/device.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// An object that waits for the statistics of a device.
class stats_listener {
public:
    virtual ~stats_listener() = default;

    /// From any thread. Null: there will be no answer.
    virtual void answered(std::size_t index, std::shared_ptr<const device_stats> stats) noexcept = 0;
};

/// Asks a device for its statistics. At most one request is outstanding, so that a device that does not answer
/// collects no requests; those who ask meanwhile share the answer.
class device_query : public std::enable_shared_from_this<device_query> {
public:
    explicit device_query(device gpu) noexcept : gpu_(std::move(gpu)) {}

    /// The listener is called later, if it still exists, with this index.
    void ask(const std::shared_ptr<stats_listener>& who, std::size_t index);

    device_status status() const { return gpu_.status(); }

private:
    class answer;

    struct waiter {
        std::weak_ptr<stats_listener> who;
        std::size_t index;
    };

    void end(std::shared_ptr<const device_stats> stats) noexcept;

    const device gpu_;
    std::mutex mutex_;
    std::vector<waiter> waiters_;
    bool asking_ = false;
};

} // namespace coaccel::detail

#endif
