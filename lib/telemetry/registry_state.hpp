#ifndef COACCEL_TELEMETRY_REGISTRY_STATE_HPP
#define COACCEL_TELEMETRY_REGISTRY_STATE_HPP

#include "telemetry/owned_metrics.hpp"
#include "telemetry/registered_source.hpp"

#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace coaccel::detail {

/// The registry that its copies share.
///
/// A collection asks all devices, with a time limit, and then, on the executor, calls the functions and composes the
/// snapshot.
class registry_state final : public shutdown_hook, public std::enable_shared_from_this<registry_state> {
public:
    registry_state(asio::any_io_executor ex, const telemetry::registry_options& options);
    ~registry_state();

    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }

    /// Calls fn(owned_metrics&) under the lock.
    template <class Fn>
    auto with_metrics(Fn fn)
    {
        const std::lock_guard lock(mutex_);
        return fn(metrics_);
    }

    void add(std::shared_ptr<registered_source> source);
    void remove(const registered_source& source) noexcept;
    std::vector<telemetry::device_sample> devices() const;

    void collect(collection_op& op);
    void cancel(collection_op& op);

    void shutdown(async_op_list& out) noexcept override;

private:
    class collection;
    using sources = std::vector<std::shared_ptr<registered_source>>;

    void answered(const std::shared_ptr<collection>& c, std::size_t index,
                  std::shared_ptr<const device_stats> stats) noexcept;
    /// These two with the lock held.
    void arm_timer(const std::shared_ptr<collection>& c);
    void post_finish(const std::shared_ptr<collection>& c);
    /// On the executor.
    void finish(const std::shared_ptr<collection>& c);
    telemetry::snapshot compose(collection& c);

    held_executor executor_;
    const telemetry::registry_options options_;

    mutable std::mutex mutex_;
    owned_metrics metrics_;
    telemetry::counter collections_;
    telemetry::counter dropped_;
    telemetry::counter timeouts_;
    telemetry::counter errors_;
    sources sources_;
    wait_list waiting_;
    std::vector<std::shared_ptr<collection>> active_;
    bool shut_down_ = false;
};

} // namespace coaccel::detail

#endif
