#include "core/option_check.hpp"
#include "serve/replica_set.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/serve/replica_pool.hpp>
#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <mutex>
#include <random>
#include <utility>

namespace coaccel {

error_code serve::replica_pool_options::check() const noexcept
{
    return detail::check_options({
        {how <= balance::sticky, "how", how, detail::an_enumerator},
        {max_load >= 1, "max_load", max_load, "it must be at least 1"},
    });
}

namespace detail {
namespace {

class shared_replicas final : public replica_pool_state, public shutdown_hook {
public:
    shared_replicas(asio::any_io_executor ex, std::vector<device> devices, const serve::replica_pool_options& options)
        : executor_(std::move(ex)), options_(options), devices_(std::move(devices)),
          choice_(devices_.size(), options.how), picked_(devices_.size())
    {
        enlist(executor_.get());
    }

    ~shared_replicas() override { withdraw(); }

    const serve::replica_pool_options& options() const noexcept { return options_; }

    asio::any_io_executor executor() const
    {
        const std::scoped_lock lock(mutex_);
        return executor_.get();
    }

    result<std::size_t> pick(std::uint64_t key)
    {
        const std::scoped_lock lock(mutex_);
        for (std::size_t i = 0; i < devices_.size(); ++i)
            choice_.set_health(i, health_of(devices_[i].status().state));
        const auto chosen =
            choice_.pick(key, random_(), [this](std::size_t i) { return choice_.load(i) < options_.max_load; });
        if (!chosen)
            return why_none();
        choice_.started(*chosen);
        ++picked_[*chosen];
        return *chosen;
    }

    void ended(std::size_t index) noexcept override
    {
        async_op_list drained;
        {
            const std::scoped_lock lock(mutex_);
            choice_.ended(index);
            if (choice_.load(index) == 0)
                move_waiting(index, drained);
        }
        drained.post_all();
    }

    void resume(std::size_t index) noexcept override
    {
        async_op_list drains;
        {
            const std::scoped_lock lock(mutex_);
            if (index >= choice_.size())
                return;
            choice_.set_draining(index, false);
            move_waiting(index, drains);
        }
        drains.fail_all(asio::error::operation_aborted);
        drains.post_all();
    }

    void drain(drain_op& op)
    {
        // Destroyed outside the lock: the handler may own the pool.
        async_op_list unused;
        {
            const std::scoped_lock lock(mutex_);
            if (closed_)
                return unused.push_back(op);
            if (op.index >= choice_.size()) {
                op.ec = op_error(errc::invalid_argument, options_.name,
                                 {"there is no replica ", op.index, "; the pool has ", choice_.size()});
            } else {
                choice_.set_draining(op.index, true);
                if (choice_.load(op.index) > 0)
                    return waiting_.add(op);
            }
        }
        op.post();
    }

    void cancel(drain_op& op)
    {
        {
            const std::scoped_lock lock(mutex_);
            if (!op.waiting())
                return;
            waiting_.remove(op);
        }
        op.ec = asio::error::operation_aborted;
        op.post();
    }

    std::vector<serve::replica_stats> stats() const override
    {
        const std::scoped_lock lock(mutex_);
        std::vector<serve::replica_stats> all;
        all.reserve(devices_.size());
        for (std::size_t i = 0; i < devices_.size(); ++i)
            all.push_back({devices_[i].status().state, choice_.draining(i), choice_.load(i), picked_[i]});
        return all;
    }

    void shutdown(async_op_list& out) noexcept override
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        waiting_.move_all(out);
        executor_.let_go(out);
    }

private:
    error_code why_none() const
    {
        std::size_t working = 0;
        std::size_t drained = 0;
        for (std::size_t i = 0; i < choice_.size(); ++i) {
            const bool works = choice_.health(i) != replica_health::down;
            working += works;
            drained += works && choice_.draining(i);
        }
        if (working == 0)
            return op_error(errc::device_failed, options_.name,
                            {"none of its ", choice_.size(), " devices works; the first one is ",
                             to_string(devices_.front().status().state)});
        if (drained == working)
            return op_error(errc::actor_stopped, options_.name, {"all replicas that work are drained"});
        return op_error(errc::queue_full, options_.name, {"each replica has ", options_.max_load, " requests"});
    }

    void move_waiting(std::size_t index, async_op_list& out) noexcept
    {
        async_op_list others;
        while (!waiting_.empty()) {
            auto& op = static_cast<drain_op&>(*waiting_.front());
            waiting_.remove(op);
            (op.index == index ? out : others).push_back(op);
        }
        while (async_op_base* op = others.pop_front())
            waiting_.add(*op);
    }

    held_executor executor_;
    const serve::replica_pool_options options_;
    const std::vector<device> devices_;
    mutable std::mutex mutex_;
    replica_set choice_;
    std::vector<std::uint64_t> picked_;
    std::mt19937_64 random_{std::random_device{}()};
    wait_list waiting_;
    /// The execution context is being destroyed.
    bool closed_ = false;
};

shared_replicas& real(const std::shared_ptr<replica_pool_state>& s) noexcept
{
    return static_cast<shared_replicas&>(*s);
}

} // namespace

result<std::shared_ptr<replica_pool_state>> make_replica_pool(asio::any_io_executor ex, std::vector<device> devices,
                                                              const serve::replica_pool_options& options)
{
    if (auto ec = options.check())
        return ec;
    if (devices.empty())
        return op_error(errc::invalid_argument, options.name, {"no replica is given"});
    if (std::ranges::find(devices, device()) != devices.end())
        return op_error(errc::invalid_argument, options.name, {"the device of a replica is empty"});
    return std::shared_ptr<replica_pool_state>(
        std::make_shared<shared_replicas>(std::move(ex), std::move(devices), options));
}

result<std::size_t> pick_replica(const std::shared_ptr<replica_pool_state>& state, std::uint64_t key)
{
    if (!state)
        return op_error(errc::invalid_argument, "replica_pool", {"it is empty: default-constructed or moved from"});
    return real(state).pick(key);
}

asio::any_io_executor executor_of(const std::shared_ptr<replica_pool_state>& state) noexcept
{
    return state ? real(state).executor() : asio::any_io_executor(asio::system_executor());
}

void cancel_drain::operator()(asio::cancellation_type type) const
{
    constexpr auto honoured =
        asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
    if ((type & honoured) == asio::cancellation_type::none)
        return;
    if (auto s = state.lock())
        real(s).cancel(*op);
}

void initiate_drain::begin(drain_op& op) const
{
    if (state)
        return real(state).drain(op);
    op.ec = op_error(errc::invalid_argument, "replica_pool", {"it is empty: default-constructed or moved from"});
    op.post();
}

telemetry::registration report(const telemetry::registry& where, const std::shared_ptr<replica_pool_state>& state)
{
    return where.add_source([state](telemetry::metric_writer& out) {
        const std::string& name = real(state).options().name;
        const auto all = state->stats();
        for (std::size_t i = 0; i < all.size(); ++i) {
            const telemetry::labels mine{{"pool", name}, {"replica", std::to_string(i)}};
            out.gauge("coaccel_pool_load", "Requests on a replica.", mine, static_cast<double>(all[i].load));
            out.counter("coaccel_pool_requests_total", "Requests that a replica was given.", mine,
                        static_cast<double>(all[i].picked));
            out.gauge("coaccel_pool_replica_up", "1 if the device of the replica works.", mine,
                      health_of(all[i].state) == replica_health::up ? 1 : 0);
            out.gauge("coaccel_pool_replica_draining", "1 if the replica gets no further requests.", mine,
                      all[i].draining ? 1 : 0);
        }
    });
}

} // namespace detail
} // namespace coaccel
