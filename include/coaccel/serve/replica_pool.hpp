#ifndef COACCEL_SERVE_REPLICA_POOL_HPP
#define COACCEL_SERVE_REPLICA_POOL_HPP

#include <coaccel/core/as_result.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/serve/balance.hpp>
#include <coaccel/serve/detail/replica_pool_state.hpp>

#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace coaccel::serve {

/// Something that exists once per device, such as a plan, and the device by whose state its health is judged.
template <class T>
struct replica {
    T what;     ///< The replica.
    device gpu; ///< Its device.
};

template <class T>
class replica_pool;

/// The use of a replica by one request: `lease->async_run(...)`. The replica counts the request until the lease is
/// destroyed. Move-only.
template <class T>
class replica_lease {
public:
    replica_lease() noexcept = default; ///< Of no replica.
    replica_lease(replica_lease&& other) noexcept = default;
    replica_lease& operator=(replica_lease&& other) noexcept
    {
        if (this != &other) {
            release();
            state_ = std::move(other.state_);
            what_ = std::move(other.what_);
            index_ = other.index_;
        }
        return *this;
    }
    ~replica_lease() { release(); }

    const T& operator*() const noexcept { return (*what_)[index_].what; }   ///< The replica.
    const T* operator->() const noexcept { return &(*what_)[index_].what; } ///< The replica.
    std::size_t index() const noexcept { return index_; }                   ///< Its number in the pool.
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// The request has ended; the lease is of no replica afterwards.
    void release() noexcept
    {
        if (auto s = std::move(state_))
            s->ended(index_);
        what_.reset();
    }

private:
    friend class replica_pool<T>;

    using replicas = std::shared_ptr<const std::vector<replica<T>>>;

    replica_lease(std::shared_ptr<detail::replica_pool_state> s, replicas w, std::size_t i) noexcept
        : state_(std::move(s)), what_(std::move(w)), index_(i)
    {}

    std::shared_ptr<detail::replica_pool_state> state_;
    replicas what_;
    std::size_t index_ = 0;
};

/// Spreads requests over replicas.
///
///     auto pool = replica_pool<plan>::create(ex, {{plan0, gpu0}, {plan1, gpu1}}, {.how = balance::least_loaded});
///     auto lease = pool.value().pick();
///     co_await lease.value()->async_run(from(x), to(y));
///
/// A replica whose device is being repaired gets no requests while another one works; if none works, requests go to
/// one that is being repaired, and wait there. A replica whose device has failed or was stopped leaves the pool, and
/// returns when the device is revived.
///
/// A value type: copies refer to the same pool. Leases may outlive it.
///
/// Exceptions: create(), pick() and stats() throw std::bad_alloc.
/// Thread safety: const functions may be called from any thread, even on the same copy.
template <class T>
class replica_pool {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to no pool: pick() returns errc::invalid_argument.
    replica_pool() noexcept = default;

    /// Errors: errc::invalid_argument without replicas, and for an empty device; errc::invalid_option.
    [[nodiscard]] static result<replica_pool> create(executor_type ex, std::vector<replica<T>> replicas,
                                                     const replica_pool_options& options = {})
    {
        std::vector<device> devices;
        devices.reserve(replicas.size());
        for (const replica<T>& r : replicas)
            devices.push_back(r.gpu);
        BOOST_OUTCOME_TRY(auto state, detail::make_replica_pool(std::move(ex), std::move(devices), options));
        replica_pool made;
        made.state_ = std::move(state);
        made.replicas_ = std::make_shared<const std::vector<replica<T>>>(std::move(replicas));
        return made;
    }

    /// Chooses a replica for a request. `key` is for balance::sticky.
    ///
    /// Errors: errc::queue_full if all have max_load requests; errc::device_failed if no device works;
    /// errc::actor_stopped if all others are drained; errc::invalid_argument for an empty pool.
    [[nodiscard]] result<replica_lease<T>> pick(std::uint64_t key = 0) const
    {
        BOOST_OUTCOME_TRY(const std::size_t i, detail::pick_replica(state_, key));
        return replica_lease<T>(state_, replicas_, i);
    }

    /// Gives a replica no further requests, for example to replace it.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: its last request has ended.
    /// Executor: the handler's, or else the pool's.
    /// Cancellation: total, partial, terminal; ends the wait, and the replica still gets no requests.
    /// Errors: errc::invalid_argument for an index that does not exist, operation_aborted.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_drain(std::size_t index, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_drain{state_}, token, index);
    }

    /// Gives a drained replica requests again; a wait for its drain completes with operation_aborted. Does nothing for
    /// an index that does not exist.
    void resume(std::size_t index) const
    {
        if (state_)
            state_->resume(index);
    }

    /// The number of replicas.
    std::size_t size() const noexcept { return replicas_ ? replicas_->size() : 0; }
    /// What each replica has to do.
    std::vector<replica_stats> stats() const { return state_ ? state_->stats() : std::vector<replica_stats>(); }
    executor_type get_executor() const noexcept { return detail::executor_of(state_); }
    explicit operator bool() const noexcept { return state_ != nullptr; }
    friend bool operator==(const replica_pool& a, const replica_pool& b) noexcept { return a.state_ == b.state_; }

    /// Adds its metrics to a registry, until the registration is destroyed.
    [[nodiscard]] telemetry::registration report_to(const telemetry::registry& where) const
    {
        return state_ ? detail::report(where, state_) : telemetry::registration();
    }

private:
    std::shared_ptr<detail::replica_pool_state> state_;
    std::shared_ptr<const std::vector<replica<T>>> replicas_;
};

} // namespace coaccel::serve

#endif
