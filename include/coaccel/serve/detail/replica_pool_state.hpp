#ifndef COACCEL_SERVE_DETAIL_REPLICA_POOL_STATE_HPP
#define COACCEL_SERVE_DETAIL_REPLICA_POOL_STATE_HPP

#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/serve/balance.hpp>
#include <coaccel/telemetry/registration.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel::telemetry {

class registry;

} // namespace coaccel::telemetry

namespace coaccel::serve {

/// How a pool spreads requests.
struct replica_pool_options {
    std::string name = "pool";           ///< In messages and metrics.
    balance how = balance::least_loaded; ///< How a replica is chosen.
    std::uint64_t max_load = 1ull << 20; ///< Requests on one replica at the same time; at least 1.

    /// errc::invalid_option if an option is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

/// What one replica of a pool has to do.
struct replica_stats {
    device_state state = device_state::stopped; ///< Of its device.
    bool draining = false;                      ///< Whether it gets no further requests.
    std::uint64_t load = 0;                     ///< Requests that it has now.
    std::uint64_t picked = 0;                   ///< Requests that it was given.
};

} // namespace coaccel::serve

namespace coaccel::detail {

/// What all copies of a pool share. Thread safety: any thread.
class COACCEL_DECL replica_pool_state {
public:
    virtual ~replica_pool_state() = default;

    virtual void ended(std::size_t index) noexcept = 0;
    virtual void resume(std::size_t index) noexcept = 0;
    virtual std::vector<serve::replica_stats> stats() const = 0;
};

COACCEL_DECL result<std::shared_ptr<replica_pool_state>>
make_replica_pool(asio::any_io_executor ex, std::vector<device> devices, const serve::replica_pool_options& options);
COACCEL_DECL result<std::size_t> pick_replica(const std::shared_ptr<replica_pool_state>& state, std::uint64_t key);
COACCEL_DECL asio::any_io_executor executor_of(const std::shared_ptr<replica_pool_state>& state) noexcept;
COACCEL_DECL telemetry::registration report(const telemetry::registry& where,
                                            const std::shared_ptr<replica_pool_state>& state);

/// Waits until a replica has no requests.
class drain_op : public async_op_base {
public:
    explicit drain_op(std::size_t i) noexcept : index(i) {}

    const std::size_t index;

    std::tuple<error_code> take() const noexcept { return {ec}; }

protected:
    ~drain_op() = default;
};

struct COACCEL_DECL cancel_drain {
    std::weak_ptr<replica_pool_state> state;
    drain_op* op;

    void operator()(asio::cancellation_type type) const;
};

struct COACCEL_DECL initiate_drain {
    using executor_type = asio::any_io_executor;

    std::shared_ptr<replica_pool_state> state;

    executor_type get_executor() const noexcept { return executor_of(state); }

    template <class Handler>
    void operator()(Handler&& handler, std::size_t index) const
    {
        using op_type = handler_op<drain_op, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(static_cast<Handler&&>(handler), get_executor(), index);
        op->on_cancel(cancel_drain{state, op});
        begin(*op);
    }

private:
    void begin(drain_op& op) const;
};

} // namespace coaccel::detail

#endif
