#ifndef COACCEL_TELEMETRY_REGISTERED_SOURCE_HPP
#define COACCEL_TELEMETRY_REGISTERED_SOURCE_HPP

#include "telemetry/device_query.hpp"

#include <coaccel/telemetry/metric_writer.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace coaccel::detail {

class sample_list;

/// A source of a registry: a function, or a device.
class registered_source {
public:
    explicit registered_source(std::function<void(telemetry::metric_writer&)> function) noexcept
        : function_(std::move(function))
    {}
    registered_source(device gpu, std::string name)
        : query_(std::make_shared<device_query>(std::move(gpu))), name_(std::move(name))
    {}

    /// Null for a function.
    const std::shared_ptr<device_query>& query() const noexcept { return query_; }
    /// The name of the device.
    const std::string& name() const noexcept { return name_; }

    /// Calls the function. Exceptions of the function pass through.
    void call(sample_list& out);

    /// After this call the function is not called any more, and it is destroyed unless this is one of its own calls.
    void close() noexcept;

private:
    // Recursive, because a function may destroy its own registration.
    std::recursive_mutex mutex_;
    std::function<void(telemetry::metric_writer&)> function_;
    bool running_ = false;
    bool closed_ = false;
    const std::shared_ptr<device_query> query_;
    const std::string name_;
};

} // namespace coaccel::detail

#endif
