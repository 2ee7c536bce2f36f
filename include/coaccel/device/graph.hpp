#ifndef COACCEL_DEVICE_GRAPH_HPP
#define COACCEL_DEVICE_GRAPH_HPP

#include <coaccel/device/detail/graph_requests.hpp>
#include <coaccel/device/detail/plan_requests.hpp>
#include <coaccel/device/device.hpp>

#include <boost/asio/async_result.hpp>

#include <memory>
#include <utility>

namespace coaccel {

/// Ops over existing buffers that were recorded once, by device::async_record, and run as one command; on a GPU as one
/// CUDA graph. A value type: copies refer to the same graph, and keep the device alive as a copy of it does. After the
/// last copy is destroyed, the graph is released once its runs have ended.
///
///     auto step = co_await gpu.async_record(seq(op1, op2, op3));
///     co_await gpu.async_exec(step.value());
///
/// A graph keeps the memory of its buffers, also if the buffers themselves are destroyed. It ends with the context to
/// which its buffers belong: its runs then complete with errc::stale_ref.
///
/// Executor, cancellation, exceptions and thread safety: as for `device`.
class graph {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to no graph; runs of it complete with errc::invalid_argument.
    graph() noexcept = default;

    /// Releases the graph. Runs that have been accepted end first; later runs complete with errc::invalid_argument.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the device holds nothing for the graph any more.
    /// Cancellation: completes at once; the graph is released all the same.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_release(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::unload_request>{core()},
                                                             token, detail::loaded_plans{loaded()});
    }

    executor_type get_executor() const noexcept { return detail::executor_of(core()); }
    const device& get_device() const noexcept { return device_; } ///< The device on which it was recorded.
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    friend bool operator==(const graph& a, const graph& b) noexcept { return a.handle_ == b.handle_; }

private:
    friend struct detail::graph_access;
    template <class Plan, class Device>
    friend class detail::load_request;

    graph(device gpu, std::shared_ptr<detail::plan_handle> handle) noexcept
        : device_(std::move(gpu)), handle_(std::move(handle))
    {}

    detail::core_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }
    std::shared_ptr<detail::loaded_plan> loaded() const noexcept { return handle_ ? handle_->plan : nullptr; }

    device device_;
    std::shared_ptr<detail::plan_handle> handle_;
};

template <class Token>
auto device::async_record(op_list ops, Token&& token) const
{
    static_assert(asio::completion_token_for<Token, void(error_code, graph)>);
    return asio::async_initiate<Token, void(error_code, graph)>(
        detail::initiate_request<detail::load_request<graph, device>>{core()}, token, *this, std::move(ops));
}

template <op... Ops, class Token>
auto device::async_record(const op_seq<Ops...>& ops, Token&& token) const
{
    return async_record(detail::list_of(ops), static_cast<Token&&>(token));
}

} // namespace coaccel

#endif
