#ifndef COACCEL_DEVICE_DETAIL_CONTROL_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_CONTROL_REQUESTS_HPP

#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/device/device_options.hpp>
#include <coaccel/device/device_stats.hpp>
#include <coaccel/device/shutdown.hpp>

#include <tuple>
#include <utility>

namespace coaccel::detail {

/// Shared by all copies of a `device`. When the last copy is destroyed, the device drains and stops.
class COACCEL_DECL device_handle {
public:
    explicit device_handle(core_ptr c) noexcept : core(std::move(c)) {}
    device_handle(const device_handle&) = delete;
    device_handle& operator=(const device_handle&) = delete;
    ~device_handle();

    const core_ptr core;
};

COACCEL_DECL core_ptr make_core(asio::any_io_executor ex, const device_options& options);

/// Completes when the device is ready, or will never be ready.
template <class Device>
class start_request : public request {
public:
    start_request(const core_ptr& core, std::shared_ptr<device_handle> handle)
        : request(request_kind::start), handle_(std::move(handle))
    {
        (void)core;
    }

    auto take() { return std::tuple(ec, ec ? Device() : Device(std::move(handle_))); }

protected:
    ~start_request() = default;

private:
    std::shared_ptr<device_handle> handle_;
};

/// Creates a device each time it is invoked, so that a deferred creation can be started more than once.
template <class Device>
struct initiate_create {
    using executor_type = asio::any_io_executor;

    executor_type executor;

    executor_type get_executor() const noexcept { return executor; }

    template <class Handler>
    void operator()(Handler&& handler, const device_options& options) const
    {
        auto handle = std::make_shared<device_handle>(make_core(executor, options));
        const initiate_request<start_request<Device>> start{handle->core};
        start(static_cast<Handler&&>(handler), std::move(handle));
    }
};

class stats_call : public request {
public:
    stats_call() noexcept : request(request_kind::stats) {}

    device_stats stats;

protected:
    ~stats_call() = default;
};

class stats_request : public stats_call {
public:
    explicit stats_request(const core_ptr&) {}

    auto take() { return std::tuple(ec, std::move(stats)); }

protected:
    ~stats_request() = default;
};

class shutdown_call : public request {
public:
    explicit shutdown_call(coaccel::shutdown how) noexcept : request(request_kind::shutdown), mode(how) {}

    const coaccel::shutdown mode;

protected:
    ~shutdown_call() = default;
};

class replace_call : public request {
public:
    replace_call() noexcept : request(request_kind::replace) {}

protected:
    ~replace_call() = default;
};

class replace_request : public replace_call {
public:
    explicit replace_request(const core_ptr&) noexcept {}

    auto take() { return std::tuple(ec); }

protected:
    ~replace_request() = default;
};

class revive_request : public request {
public:
    explicit revive_request(const core_ptr&) noexcept : request(request_kind::revive) {}

    auto take() { return std::tuple(ec); }

protected:
    ~revive_request() = default;
};

class shutdown_request : public shutdown_call {
public:
    shutdown_request(const core_ptr&, coaccel::shutdown how) noexcept : shutdown_call(how) {}

    auto take() { return std::tuple(ec); }

protected:
    ~shutdown_request() = default;
};

} // namespace coaccel::detail

#endif
