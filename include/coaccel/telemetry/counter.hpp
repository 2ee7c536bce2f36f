#ifndef COACCEL_TELEMETRY_COUNTER_HPP
#define COACCEL_TELEMETRY_COUNTER_HPP

#include <coaccel/core/config.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace coaccel::telemetry {

/// A number that only grows. A value type: copies refer to the same counter.
///
/// Exceptions: the constructor throws std::bad_alloc; other functions do not throw.
/// Thread safety: every function may be called from any thread, also on the same object.
class counter {
public:
    /// A counter of zero.
    counter() : value_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

    /// Adds to it.
    void add(std::uint64_t n = 1) const noexcept { value_->fetch_add(n, std::memory_order_relaxed); }
    /// Its current value.
    std::uint64_t value() const noexcept { return value_->load(std::memory_order_relaxed); }

private:
    std::shared_ptr<std::atomic<std::uint64_t>> value_;
};

/// A number that can take any value. A value type: copies refer to the same gauge.
///
/// Exceptions: the constructor throws std::bad_alloc; other functions do not throw.
/// Thread safety: every function may be called from any thread, also on the same object.
class gauge {
public:
    /// A gauge of zero.
    gauge() : value_(std::make_shared<std::atomic<double>>(0.0)) {}

    /// Replaces its value.
    void set(double value) const noexcept { value_->store(value, std::memory_order_relaxed); }
    /// Adds to its value.
    void add(double difference) const noexcept { value_->fetch_add(difference, std::memory_order_relaxed); }
    /// Its current value.
    double value() const noexcept { return value_->load(std::memory_order_relaxed); }

private:
    std::shared_ptr<std::atomic<double>> value_;
};

} // namespace coaccel::telemetry

#endif
