#ifndef COACCEL_TELEMETRY_REGISTRY_HPP
#define COACCEL_TELEMETRY_REGISTRY_HPP

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/supervisor.hpp>
#include <coaccel/core/trace.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/telemetry/counter.hpp>
#include <coaccel/telemetry/detail/collect_ops.hpp>
#include <coaccel/telemetry/histogram.hpp>
#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/registration.hpp>
#include <coaccel/telemetry/snapshot.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coaccel::telemetry {

/// The options of a registry.
struct registry_options {
    /// How long a collection waits for a device, at most. The samples of a device that has not answered by then are
    /// missing, and coaccel_telemetry_source_timeouts_total counts it.
    std::chrono::nanoseconds source_timeout = std::chrono::seconds(1);
};

/// Collects metrics: those that it creates, and those of the sources that were added to it. A value type: copies refer
/// to the same registry.
///
/// Sources are asked when metrics are collected; in between, a registry costs nothing. If samples of two sources
/// collide, for example because two devices have the same name, those of the source that was added later are dropped
/// and counted in coaccel_telemetry_dropped_samples_total.
///
/// Executor: sources are called on the registry's executor; handlers run on their associated executor, or else on the
/// registry's.
/// Exceptions: every function except get_executor() throws std::bad_alloc if there is no memory; it has no effect then.
/// Lifetimes: a registry may outlive its execution context. Collections started afterwards are destroyed without
/// calling their handlers.
/// Thread safety: every function may be called from any thread, also on the same object; assignment to a copy needs
/// exclusive access.
class COACCEL_DECL registry {
public:
    using executor_type = asio::any_io_executor;

    /// A registry without metrics except its own.
    explicit registry(executor_type ex, const registry_options& options = {});

    executor_type get_executor() const noexcept;

    /// The counter of this name and these labels, which is created if there is none.
    ///
    /// Errors: errc::invalid_argument if the name does not end with "_total", if the name or a label is not valid, if
    /// the name is in use with another type or help, and if there is no metric of this name and it begins with
    /// "coaccel_", which is reserved for this library.
    result<telemetry::counter> add_counter(std::string_view name, std::string_view help, labels with = {}) const;

    /// The gauge of this name and these labels, which is created if there is none.
    ///
    /// Errors: errc::invalid_argument, as for add_counter; the name must not end with "_total".
    result<telemetry::gauge> add_gauge(std::string_view name, std::string_view help, labels with = {}) const;

    /// The histogram of this name and these labels, which is created with these options if there is none.
    ///
    /// Errors: errc::invalid_argument, as for add_gauge.
    result<telemetry::histogram> add_histogram(std::string_view name, std::string_view help, labels with = {},
                                               const histogram_options& options = {}) const;

    /// Adds a function that writes samples. Every collection calls it, on the registry's executor; it is never called
    /// by two threads at a time, nor after its registration was destroyed. It must not block: there is no time limit
    /// for it.
    ///
    /// If it throws, its samples of this collection are dropped, and coaccel_telemetry_source_errors_total counts it.
    /// Exceptions: also those of moving the function.
    [[nodiscard]] registration add_source(std::function<void(metric_writer&)> source) const;

    /// Adds a device: every collection asks it for its statistics. The label `device` of its samples is the name.
    ///
    /// Lifetimes: the device is kept until the registration is destroyed.
    /// Errors: errc::invalid_argument for an empty device.
    [[nodiscard]] result<registration> add(device gpu, std::string name) const;

    /// Adds a mailbox: the number of its messages, its capacity, and whether it is open. The label `mailbox` of its
    /// samples is the name.
    template <message M>
    [[nodiscard]] registration add(const mailbox_ref<M>& box, std::string name) const
    {
        return add_source([box = mailbox_ref<M>(box), name = std::move(name)](metric_writer& out) {
            detail::write_mailbox(out, name, box.size(), box.capacity(), box.is_open());
        });
    }

    /// Adds an actor: its messages, failures and starts, with the name as the label `actor`, and its mailbox, as
    /// above.
    ///
    /// Lifetimes: the actor is not kept; its samples end with it.
    /// Errors: errc::invalid_argument for a null pointer.
    template <message M>
    [[nodiscard]] result<registration> add(const std::shared_ptr<actor<M>>& what, std::string name) const
    {
        if (!what)
            return detail::nothing_to_add("actor", name);
        return add_source([weak = std::weak_ptr<actor<M>>(what), name = std::move(name)](metric_writer& out) {
            const auto a = weak.lock();
            if (!a)
                return;
            const auto box = a->ref();
            detail::write_actor(out, name, a->stats());
            detail::write_mailbox(out, name, box.size(), box.capacity(), box.is_open());
        });
    }

    /// Adds a supervisor: its children, their failures and restarts, and the failures that it has escalated. The label
    /// `supervisor` of its samples is the name.
    ///
    /// Lifetimes: the supervisor is not kept; its samples end with it.
    /// Errors: errc::invalid_argument for a null pointer.
    [[nodiscard]] result<registration> add(const std::shared_ptr<supervisor>& what, std::string name) const;

    /// Adds a buffer of trace events: how many were added, and how many were overwritten or dropped. The label `trace`
    /// of its samples is the name. A collection reads 8 bytes for each event that fits.
    ///
    /// Lifetimes: the buffer is not kept; its samples end with it.
    /// Errors: errc::invalid_argument for a null pointer.
    [[nodiscard]] result<registration> add(const std::shared_ptr<trace_buffer>& what, std::string name) const;

    /// Collects all metrics.
    ///
    /// Completion signature: void(error_code, snapshot).
    /// Completes when: every device has answered, or the time limit has passed.
    /// Cancellation: total, partial, terminal; completes at once.
    /// Errors: operation_aborted.
    template <asio::completion_token_for<void(error_code, snapshot)> Token = default_token>
    auto async_collect(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, snapshot)>(detail::initiate_collect(state_), token);
    }

    /// The names and states of the added devices, at once and without statistics.
    std::vector<device_sample> devices() const;

    friend bool operator==(const registry& a, const registry& b) noexcept { return a.state_ == b.state_; }

private:
    std::shared_ptr<detail::registry_state> state_;
};

} // namespace coaccel::telemetry

#endif
